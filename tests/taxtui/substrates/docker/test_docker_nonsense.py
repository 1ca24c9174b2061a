"""A daemon that answers nonsense, cuts its streams or has no end: one of our errors, never half a result."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from taxtui.commands.clean import _clean
from taxtui.errors import CreateFailed, ExecFailed, SubstrateError
from taxtui.plan.spec import SubstrateRef
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, outputs
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.docker import DockerOptions
from taxtui.substrates.docker.exec import Exec
from taxtui.substrates.docker.http import Address, Connection, Daemon, Multiplexed
from taxtui.substrates.docker.substrate import DockerSubstrate
from tests.support.sandboxes import spec


def piece(channel: int, data: bytes) -> bytes:
    return bytes([channel, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def stream(data: bytes) -> Multiplexed:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    writer: Any = None
    return Multiplexed(Connection(reader, writer))


CUT, NO_FRAME = "cut: a command's output is incomplete", "an invalid stream frame"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (piece(1, b"one")[:-1], CUT),
        (piece(1, b"one") + b"\x01\x00", CUT),
        (piece(1, b"one")[:8], CUT),
        (b"plain words, no pieces at all", NO_FRAME),
        (piece(9, b"x"), NO_FRAME),
        (b"\x01\x01\x00\x00\x00\x00\x00\x01x", NO_FRAME),
    ],
)
async def test_a_stream_that_ends_within_a_piece_or_has_none_is_no_output(data: bytes, why: str) -> None:
    out, err = await outputs(stream(piece(1, b"one") + piece(2, b"two") + piece(1, b"") + piece(1, b"three")))
    assert (out.kept, err.kept) == (b"onethree", b"two")
    with pytest.raises(ExecFailed, match=why):
        await outputs(stream(data))


@contextlib.asynccontextmanager
async def daemon(folder: Path, *answers: bytes, heard: list[bytes] | None = None) -> AsyncIterator[Daemon]:
    """One that gives these answers in turn, whatever it is asked; ``heard`` receives the requests."""
    left = list(answers)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while left and (request := await reader.read(1 << 16)):
            if heard is not None:
                heard.append(request)
            writer.write(left.pop(0))
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(talk, folder / "d.sock")
    client = Daemon(Address(path=str(folder / "d.sock")))
    try:
        yield client
    finally:
        await client.close()
        server.close()
        await server.wait_closed()


def answer(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\r\n\r\n",
        b"HTTP/1.1 many x\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length: 99999999999999\r\n\r\n",
        b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
        b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 x\r\nTransfer-Encoding: CHUNKED\r\n\r\nzz\r\n",
        b"x" * (2 << 20),
        b"HTTP/1.1 200 x\r\n",
        b"",
    ],
)
async def test_an_answer_that_is_no_http_is_one_of_our_errors(nonsense: bytes, tmp_path: Path) -> None:
    async with daemon(tmp_path, nonsense) as client:
        with pytest.raises(ExecFailed, match="the docker daemon"):
            await client.request("GET", "/containers/x/json")


@pytest.mark.parametrize("survives", [True, False])
async def test_a_stream_that_is_cut_with_its_container_has_ended(
    survives: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taxtui.substrates.docker.exec._SHOWS_WITHIN_S", 0.0)
    state = b'{"State": {"Running": %b}}' % (b"true" if survives else b"false")
    async with daemon(tmp_path, answer(state), answer(state)) as client:
        running = Exec(client, "c")
        running._stream = stream(b"\x01\x00")
        if survives:
            with pytest.raises(ExecFailed, match="cut"):
                await running.read()
        else:
            assert await running.read() == (ENDED, b"")


def connected(client: Daemon) -> DockerSubstrate:
    """A substrate whose daemon this is."""
    substrate = DockerSubstrate(DockerOptions(image="registry.example/team/image:1"))
    substrate.containers.daemon = client
    return substrate


async def test_a_container_that_cannot_be_started_is_removed(tmp_path: Path) -> None:
    heard: list[bytes] = []
    answers = [answer(b"{}", 404), answer(b'{"message": "no such runtime"}', 400), answer(b'{"Id": "c1"}', 201)]
    answers.append(answer(b'{"Config": {}}'))
    async with daemon(tmp_path, *reversed(answers), heard=heard) as client:
        with pytest.raises(CreateFailed, match="docker cannot make a container: no such runtime"):
            await connected(client).create(spec(), Marks())
    assert [head.split(b" HTTP")[0].split(b"?")[0] for head in heard] == [
        b"GET /images/registry.example/team/image:1/json",
        b"POST /containers/create",
        b"POST /containers/c1/start",
        b"DELETE /containers/c1",
    ]


async def test_a_create_that_is_cancelled_ends_first_and_its_container_is_removed(tmp_path: Path) -> None:
    heard: list[bytes] = []
    answers = [answer(b'{"Config": {}}'), answer(b'{"Id": "c1"}', 201), answer(b"", 204), answer(b"", 204)]
    async with daemon(tmp_path, *answers, heard=heard) as client:
        creating = asyncio.create_task(connected(client).create(spec(), Marks()))
        while len(heard) < 2:
            await asyncio.sleep(0)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
    assert heard[-1].startswith(b"DELETE /containers/c1?force=1")


async def test_paths_have_the_version_that_was_negotiated_and_the_host_is_the_daemons(tmp_path: Path) -> None:
    heard: list[bytes] = []
    async with daemon(tmp_path, answer(b'{"ApiVersion": "1.47"}'), answer(b"{}"), heard=heard) as client:
        await client.negotiate()
        await client.request("GET", "/containers/x/json")
    assert heard[0].startswith(b"GET /version HTTP")
    assert heard[1].startswith(b"GET /v1.47/containers/x/json HTTP/1.1\r\nHost: docker\r\n")
    # A proxy that serves several hosts finds none that is called docker.
    for host, header in (("builder.example", b"builder.example:2375"), ("fd00::1", b"[fd00::1]:2375")):
        assert b"\r\nHost: " + header + b"\r\n" in Daemon(Address(host=host, port=2375))._request("GET", "/x", None)


async def test_an_archive_comes_as_bytes_and_its_refusal_as_words(tmp_path: Path) -> None:
    async with daemon(tmp_path, answer(b"\0tar"), answer(b'{"message": "no such path"}', 404)) as client:
        assert (await client.request("GET", "/x", raw=True)).body == b"\0tar"
        assert (await client.request("GET", "/x", raw=True)).message == "no such path"


@pytest.mark.parametrize("kind", [b"[]", b"{}", b"3", b"words", b'{"ApiVersion": "../x"}', b'{"ApiVersion": 3}'])
async def test_a_daemon_without_a_version_is_one_line(kind: bytes, tmp_path: Path) -> None:
    for status in (200, 403):
        async with daemon(tmp_path, answer(kind, status)) as client:
            options = DockerOptions(host=f"unix://{client._address.path}")
            found = await DockerSubstrate(options).check()
        assert not found.ok
        assert found.fix == "check DOCKER_HOST and the daemon"
        assert "\n" not in found.detail


async def test_a_list_of_another_shape_is_one_line_of_clean(tmp_path: Path) -> None:
    async with daemon(tmp_path, answer(b'{"ApiVersion": "1.47"}'), answer(b"[{}]")) as client:
        reference = SubstrateRef(name="docker", options={"host": f"unix://{client._address.path}"})
        with pytest.raises(SubstrateError, match="docker: unexpected KeyError"):
            await _clean(reference, None, 0.0, force=True, dry_run=True)


@pytest.mark.parametrize(
    "stats", [b"{}", b'{"memory_stats": null, "cpu_stats": {}}', b'{"cpu_stats": {"cpu_usage": null}}']
)
async def test_missing_figures_are_unknown(stats: bytes, tmp_path: Path) -> None:
    async with daemon(tmp_path, answer(stats)) as client:
        assert await connected(client).containers.usage("c") == Usage()
