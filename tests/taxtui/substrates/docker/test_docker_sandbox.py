"""What docker sandboxes promise beyond the conformance suite: limits, hardening, and one clear line for each fault."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from taxtui.errors import CreateFailed, ExecFailed, ExecTimeout, SandboxLost, SubstrateUnavailable
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.docker import DockerOptions
from taxtui.substrates.docker.substrate import DockerSubstrate
from tests.support.sandboxes import RUN, TIGHT, assert_limited, output, sandbox_of, spec
from tests.support.waiting import cancelled

pytestmark = [pytest.mark.docker, pytest.mark.processes]


def _bare_image() -> str:
    """The base under the sandbox image: it sets neither user nor folder."""
    import docker as sdk

    with contextlib.closing(sdk.from_env()) as client:
        tags = [tag for image in client.images.list() for tag in image.tags if tag.startswith("taxtui-base:")]
    if not tags:
        pytest.skip("no base image: taxtui setup")
    return tags[0]


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_limits_are_in_force(mode: str) -> None:
    async with sandbox_of(DockerSubstrate(), limits=TIGHT) as sandbox:
        await assert_limited(sandbox, mode)


async def test_hardening() -> None:
    async with sandbox_of(DockerSubstrate()) as sandbox:
        status = dict(line.split(":\t", 1) for line in (await output(sandbox, "cat /proc/self/status")).splitlines())
        assert int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"] == "1"
        assert (await output(sandbox, "ls /sys/class/net")).split() == ["lo"]
        assert "docker-init" in await output(sandbox, "tr '\\0' ' ' < /proc/1/cmdline")


async def test_a_command_that_removes_its_working_folder() -> None:
    """What follows cannot be started there; it fails as that, and what runs can still be killed."""
    async with sandbox_of(DockerSubstrate(DockerOptions(image=_bare_image()))) as sandbox:
        session = await sandbox.open_session()
        endless = asyncio.ensure_future(sandbox.exec(Command(script="touch /tmp/begun; exec sleep 300")))
        await output(sandbox, "until test -e /tmp/begun; do sleep 0.01; done")
        await sandbox.exec(Command(script='cd / && rm -rf "$OLDPWD"'))
        with pytest.raises(ExecFailed, match="directory"):
            await sandbox.exec(Command(script="true"))
        await cancelled(endless)
        left = await session.exec(Command(script="grep -lsz '^sleep' /proc/[0-9]*/cmdline | grep -v ^/proc/1/"))
        assert left.stdout.count(b"/proc") == 1  # the container's own, under its init
        with pytest.raises(ExecTimeout):
            await session.exec(Command(script="sleep 300", timeout_s=0.2))
        with pytest.raises(SandboxLost):
            await sandbox.open_session()
        with pytest.raises(ExecFailed, match="restore its folder"):
            await sandbox.reset(Marks())


async def test_the_client_s_proxies_stay_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are in its configuration with their passwords; so are variables in the environment of taxtui itself."""
    proxies = {"httpProxy": "http://user:canary@proxy", "httpsProxy": "http://user:canary@proxy", "noProxy": "canary"}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": {"default": proxies}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://user:canary@proxy")
    async with sandbox_of(DockerSubstrate(DockerOptions(image=_bare_image()))) as sandbox:
        for path in (sandbox, await sandbox.open_session()):
            seen = await path.exec(Command(script="env; tr '\\0' '\\n' < /proc/1/environ"))
            assert b"TAXTUI_SANDBOX" in seen.stdout
            assert b"canary" not in seen.stdout
            assert b"proxy" not in seen.stdout.lower()


@pytest.mark.parametrize("user", ["", "12345:12345"])
async def test_an_image_that_names_no_folder(user: str) -> None:
    async with sandbox_of(DockerSubstrate(DockerOptions(image=_bare_image(), user=user))) as sandbox:
        assert (await output(sandbox, "pwd; echo x > note; cat note")).split() == ["/tmp", "x"]
        assert (await output(sandbox, "id -u")).strip() == (user.partition(":")[0] or "0")
        await sandbox.reset(Marks())
        assert await output(sandbox, "ls -A") == ""


async def test_a_persons_copies_of_a_sandbox_inherit_the_labels_and_are_not_the_runs() -> None:
    import docker as sdk

    substrate = DockerSubstrate()
    async with sandbox_of(substrate) as sandbox:
        with contextlib.closing(sdk.from_env()) as client:
            mine = client.containers.get(sandbox.container).commit("mine")
            try:
                copy = client.containers.create(mine, name="mine-too")
                try:
                    assert copy.labels["taxtui.run"] == RUN
                    assert [match.name for match in await substrate.find(RUN)] == [sandbox.name]
                finally:
                    copy.remove(force=True)
            finally:
                client.images.remove(mine.id, force=True)


async def test_a_container_that_is_killed_from_outside_is_lost() -> None:
    substrate = DockerSubstrate()
    async with sandbox_of(substrate) as sandbox:
        session = await sandbox.open_session()

        async def kill() -> None:
            await asyncio.sleep(0.3)
            path = f"/containers/{sandbox.container}/kill"
            await substrate.containers.daemon.request("POST", path)

        killing = asyncio.create_task(kill())
        with pytest.raises(SandboxLost):
            await sandbox.exec(Command(script="sleep 20"))
        await killing
        with pytest.raises(SandboxLost):
            await session.exec(Command(script="true"))


async def test_a_missing_runtime_image_or_network_is_one_line() -> None:
    runtime = await DockerSubstrate(DockerOptions(runtime="no-such")).check()
    assert not runtime.ok
    assert "no runtime 'no-such'" in runtime.detail
    assert "runc" in runtime.fix
    image = await DockerSubstrate(DockerOptions(image="no-such:image")).check()
    assert (image.ok, image.fix) == (False, "docker pull no-such:image")
    async with DockerSubstrate(DockerOptions(image="no-such:image")) as substrate:
        with pytest.raises(SubstrateUnavailable, match="docker pull"):
            await substrate.create(spec(), Marks())
    async with DockerSubstrate(DockerOptions(network="no-such-network")) as substrate:
        with pytest.raises(CreateFailed, match="no-such-network"):
            await substrate.create(spec(), Marks())
        assert await substrate.find(RUN) == []
