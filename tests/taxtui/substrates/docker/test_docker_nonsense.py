"""A daemon that answers words, nonsense or nothing, or cuts its streams: one of our errors, never half a result."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from taxtui.commands.clean import _clean
from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.plan.spec import Command, SubstrateRef
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, outputs
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.docker import DockerOptions
from taxtui.substrates.docker import sandbox as docker_sandbox
from taxtui.substrates.docker.containers import Image
from taxtui.substrates.docker.endpoint import endpoint
from taxtui.substrates.docker.exec import Exec
from taxtui.substrates.docker.failure import (
    NoSuchProgram,
    create_refused,
    exec_refused,
    no_client,
    not_started,
    unanswered,
    unreached,
    unusable,
)
from taxtui.substrates.docker.http import Address, Connection, Daemon, Multiplexed
from taxtui.substrates.docker.sandbox import DockerSandbox
from taxtui.substrates.docker.substrate import DockerSubstrate
from tests.support.sandboxes import spec
from tests.support.waiting import cancelled


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
        await cancelled(creating)
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
            options = DockerOptions(host=f"unix://{client.address.path}")
            found = await DockerSubstrate(options).check()
        assert not found.ok
        assert found.fix == "check DOCKER_HOST and the daemon"
        assert "\n" not in found.detail


async def test_a_list_of_another_shape_is_one_line_of_clean(tmp_path: Path) -> None:
    async with daemon(tmp_path, answer(b'{"ApiVersion": "1.47"}'), answer(b"[{}]")) as client:
        reference = SubstrateRef(name="docker", options={"host": f"unix://{client.address.path}"})
        with pytest.raises(SubstrateError, match="docker: unexpected KeyError"):
            await _clean(reference, None, 0.0, force=True, dry_run=True)


@pytest.mark.parametrize(
    "stats", [b"{}", b'{"memory_stats": null, "cpu_stats": {}}', b'{"cpu_stats": {"cpu_usage": null}}']
)
async def test_missing_figures_are_unknown(stats: bytes, tmp_path: Path) -> None:
    async with daemon(tmp_path, answer(stats)) as client:
        assert await connected(client).containers.usage("c") == Usage()


async def test_a_killer_that_fails_is_not_killed_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that lost its working folder, or its shell: whatever is run begins and fails."""
    started: list[tuple[str, str]] = []

    class Unstartable(Exec):
        async def start(self, argv: list[str], *, stdin: bool, folder: str = "") -> None:
            started.append((argv[0], folder))
            raise ExecFailed("OCI runtime exec failed")

        async def has_begun(self) -> bool:
            return True

    monkeypatch.setattr(docker_sandbox, "Exec", Unstartable)
    substrate: Any = SimpleNamespace(daemon=None)
    sandbox = DockerSandbox(substrate, spec(), "container", Image("/work", "/work", home="", name=""))
    with pytest.raises(ExecFailed, match="OCI runtime"):
        await sandbox.exec(Command(script="true"))
    assert started == [("bash", ""), ("sh", "/")]
    assert not sandbox._running


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_start_cancelled_before_the_answer_is_awaited_before_the_kill(refuses: bool, tmp_path: Path) -> None:
    """As dockerd does: one whose client has gone by its answer starts nothing, and never says so."""
    asked, may_answer = asyncio.Event(), asyncio.Event()
    running = False

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal running
        while head := (await reader.read(1 << 16)).partition(b" HTTP")[0]:
            if head == b"POST /exec/e/start":
                asked.set()
                await may_answer.wait()
                running = not refuses and not reader.at_eof()
                writer.write(answer(b"{}", 409) if refuses else b"HTTP/1.1 101 UPGRADED\r\n\r\n")
            elif head == b"POST /containers/c/exec":
                writer.write(answer(b'{"Id": "e"}', 201))
            else:
                writer.write(answer(b'{"Running": %b, "Pid": %d}' % (str(running).lower().encode(), running)))
        writer.close()

    async with await asyncio.start_unix_server(talk, tmp_path / "d.sock"):
        daemon = Daemon(Address(path=str(tmp_path / "d.sock")))
        command = Exec(daemon, "c")
        starting = asyncio.create_task(command.start(["sleep", "9"], stdin=False))
        await asked.wait()
        starting.cancel()
        await asyncio.wait({starting})
        asyncio.get_running_loop().call_later(0.05, may_answer.set)
        assert await command.has_begun() is not refuses
        command.release()
        await daemon.close()


def test_a_docker_context_is_used_as_the_docker_command_uses_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Docker Desktop, rootless docker and colima set a context, not DOCKER_HOST."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for variable in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(variable, raising=False)
    assert endpoint().path == "/var/run/docker.sock"
    for name, host in (("rootless", "unix:///run/user/1000/docker.sock"), ("lab", "tcp://192.0.2.1:2375")):
        meta = tmp_path / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest()
        meta.mkdir(parents=True)
        about = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False}}}
        (meta / "meta.json").write_text(json.dumps(about))
    (tmp_path / "config.json").write_text('{"currentContext": "rootless"}')
    assert endpoint().path == "/run/user/1000/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    assert endpoint()[1:3] == ("127.0.0.1", 2375)
    monkeypatch.setenv("DOCKER_CONTEXT", "lab")
    assert endpoint()[1:3] == ("192.0.2.1", 2375)
    assert endpoint("unix:///run/other.sock").path == "/run/other.sock"
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert endpoint()[1:3] == ("127.0.0.1", 2375)
    monkeypatch.setenv("DOCKER_CONTEXT", "nowhere")
    with pytest.raises(SubstrateUnavailable, match="there is no docker context 'nowhere'; see: docker context ls"):
        endpoint()


@pytest.mark.parametrize("host", ["ssh://somewhere", "npipe:////./pipe/docker", "fd://", "tcp://", "tls"])
def test_other_addresses_are_refused(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1" if host == "tls" else "")
    with pytest.raises(SubstrateUnavailable, match=r"TLS is not supported; forward its" if host == "tls" else r"; "):
        endpoint(host.replace("tls", "tcp://127.0.0.1:2376"))


async def test_a_daemon_that_goes_away_between_requests(tmp_path: Path) -> None:
    """A kept-alive connection that the daemon has closed is replaced; one that refuses is an error of ours."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        writer.close()

    path = tmp_path / "docker.sock"
    daemon = Daemon(Address(path=str(path)))
    async with await asyncio.start_unix_server(serve, path):
        for request in ("/one", "/two"):
            assert (await daemon.request("GET", request)).body == {}
    path.unlink(missing_ok=True)
    with pytest.raises(ExecFailed, match=r"cannot be reached|does not answer"):
        await daemon.request("GET", "/three")
    await daemon.close()


GONE = "No such container: 4f2a"
REMOVING, PULL = "Container 4f2a is not running", "docker pull x"
NO_FILE = FileNotFoundError(2, "No such file or directory")
RESET = ConnectionResetError(104, "Connection reset by peer")
ERRORS = [
    (exec_refused(404, GONE), SandboxLost, f"the container is gone: {GONE}"),
    (exec_refused(409, REMOVING), SandboxLost, f"the container is gone: {REMOVING}"),
    # During the removal the daemon reports its own failure.
    (exec_refused(500, REMOVING), SandboxLost, f"the container is gone: {REMOVING}"),
    (exec_refused(409, "Container 4f2a is paused"), ExecFailed, "the docker daemon refused: Container 4f2a is paused"),
    (exec_refused(429, "slow down"), Throttled, "the docker daemon is busy: slow down"),
    (exec_refused(503, "HTTP 503"), Throttled, "the docker daemon is busy: HTTP 503"),
    (exec_refused(400, "no user"), ExecFailed, "the docker daemon refused: no user"),
    (exec_refused(500, "HTTP 500"), ExecFailed, "the docker daemon refused: HTTP 500"),
    (unanswered(RESET), ExecFailed, "the docker daemon does not answer: Connection reset by peer"),
    (unanswered(TimeoutError()), ExecFailed, "the docker daemon does not answer: timed out"),
    (unreached(NO_FILE), ExecFailed, "the docker daemon cannot be reached: No such file or directory"),
    (unreached(OSError()), ExecFailed, "the docker daemon cannot be reached: OSError"),
    (create_refused(404, "No such image", "x"), SubstrateUnavailable, f"docker: there is no image x here; {PULL}"),
    (create_refused(404, "no network", "x:1"), CreateFailed, "docker cannot make a container: no network"),
    (create_refused(500, "no space left", "x:1"), CreateFailed, "docker cannot make a container: no space left"),
    (create_refused(503, "HTTP 503", "x:1"), Throttled, "the docker daemon is busy: HTTP 503"),
    (unusable(unanswered(TimeoutError())), SubstrateUnavailable, "docker: the daemon does not answer: timed out"),
]


@pytest.mark.parametrize(("error", "kind", "text"), ERRORS)
def test_each_answer_has_its_error(error: SubstrateError, kind: type[SubstrateError], text: str) -> None:
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (PermissionError(13, "x"), "no permission on the daemon's socket; join the group docker, or set DOCKER_HOST"),
        (NO_FILE, "no docker daemon is running there; start it, or set DOCKER_HOST"),
        (ConnectionRefusedError(111, "x"), "no docker daemon is running there"),
        (OSError(113, "no route"), "the daemon cannot be reached: no route; check DOCKER_HOST and the daemon"),
    ],
)
def test_a_missing_daemon_is_explained_by_the_socket_s_error(cause: OSError, text: str) -> None:
    failure = unreached(cause)
    failure.__cause__ = cause
    assert str(no_client(failure)).startswith(f"docker: {text}")


RUNC = b'OCI runtime exec failed: exec failed: unable to start container process: exec: "bash": '
STOPPED = b"OCI runtime exec failed: exec failed: cannot exec in a stopped container: unknown\r\n"


@pytest.mark.parametrize(
    ("exit_code", "stdout", "kind"),
    [
        (127, RUNC + b"executable file not found in $PATH: unknown\r\n", NoSuchProgram),
        (126, RUNC + b"executable file not found in $PATH: unknown\r\n", NoSuchProgram),
        (126, RUNC + b"permission denied: unknown\r\n", ExecFailed),
        (126, STOPPED, SandboxLost),
        # Commands that were started, whatever they print.
        (0, RUNC, None),
        (1, RUNC, None),
        (127, b"", None),
        (127, b"hello\nOCI runtime exec failed", None),
    ],
)
def test_a_program_that_never_ran_is_no_failed_command(
    exit_code: int, stdout: bytes, kind: type[ExecFailed] | None
) -> None:
    error = not_started(exit_code, stdout)
    assert (type(error) if error else None) is kind
