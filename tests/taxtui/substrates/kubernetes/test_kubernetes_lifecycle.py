"""The Kubernetes substrate against a stand-in API server: TLS, token, real commands."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from taxtui.errors import ExecTimeout, SandboxLost, SubstrateUnavailable
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.recording import digest
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import Marks, Sandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.sandbox import LOST_S
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.cancelling import cancellations
from tests.support.standins.kubernetes_cluster import NODE
from tests.support.standins.kubernetes_standin import TOKEN, VERSION, KubernetesStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes


def spec(trial: int = 1, run: str = "r1", ttl_s: float = 60.0) -> SandboxSpec:
    labels = {LABEL_RUN: run, LABEL_TRIAL: str(trial), LABEL_DEADLINE: "1900000000"}
    return SandboxSpec(name=f"taxtui-{run}-{trial}", labels=labels, limits=Limits(), ttl_s=ttl_s)


def options(standin: KubernetesStandin, **changes: object) -> KubernetesOptions:
    return KubernetesOptions(kubeconfig=str(standin.kubeconfig), **changes)  # type: ignore[arg-type]


async def ready(substrate: KubernetesSubstrate, trial: int = 1) -> Sandbox:
    marks = Marks()
    sandbox = await substrate.create(spec(trial), marks)
    await sandbox.wait_ready(marks)
    return sandbox


async def test_check_reports_the_version_and_makes_nothing(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    found = await substrate.check()
    assert (found.ok, found.version) == (True, VERSION)
    assert found.latency_ns > 0
    assert standin.left() == (0, 0)


async def test_check_names_each_missing_permission(standin: KubernetesStandin, substrate: KubernetesSubstrate) -> None:
    standin.denied = {"watch pods", "create pods/exec"}
    found = await substrate.check()
    assert not found.ok
    assert found.detail.endswith("watch pods, create pods/exec")
    assert "docs/substrates/kubernetes.md" in found.fix


async def test_a_stand_in_is_never_taken_for_a_provider(substrate: KubernetesSubstrate) -> None:
    assert substrate.provenance == "stand_in"


async def test_wrong_token_and_unknown_authority_are_refused(standin: KubernetesStandin) -> None:
    text = standin.kubeconfig.read_text()
    standin.kubeconfig.write_text(text.replace(TOKEN, "another"))
    with pytest.raises(SubstrateUnavailable, match="401"):
        await KubernetesSubstrate(options(standin)).__aenter__()
    async with KubernetesStandin() as other:
        standin.kubeconfig.write_text(text.replace(str(standin.port), str(other.port)))
        with pytest.raises(SubstrateUnavailable, match="Certificate"):
            await KubernetesSubstrate(options(standin)).__aenter__()
        assert other.requests == []


async def test_marks_come_in_order_and_from_one_watch(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    marks = [Marks() for _ in range(5)]
    boxes = [await substrate.create(spec(trial), mark) for trial, mark in enumerate(marks)]
    await asyncio.gather(*(box.wait_ready(mark) for box, mark in zip(boxes, marks, strict=True)))
    for mark in marks:
        assert [name for name, _, _ in mark.seen] == [
            "accepted",
            "scheduled",
            "initialized",
            "sandbox ready",
            "running",
            "ready",
        ]
        assert [at for _, at, _ in mark.seen] == sorted(at for _, at, _ in mark.seen)
        assert mark.node == digest(NODE)
    assert standin.requests.count("watch") == 1
    assert "get" not in standin.requests
    await asyncio.gather(*(box.destroy() for box in boxes))
    assert standin.left() == (0, 0)


async def test_a_command_killed_by_a_signal_is_a_result(substrate: KubernetesSubstrate) -> None:
    box = await ready(substrate)
    began_ns = time.monotonic_ns()
    got = await box.exec(Command(script="kill -9 $$"))
    waited_ns = (time.monotonic_ns() - began_ns) - (got.ended_ns - got.started_ns)
    assert got.exit_code == 137
    assert waited_ns >= LOST_S * 1e9, "waiting for the pod's fate is not the command's time"


async def test_an_old_server_without_v5(standin: KubernetesStandin, substrate: KubernetesSubstrate) -> None:
    standin.exec_protocols = ("v4.channel.k8s.io",)
    box = await ready(substrate)
    assert (await box.exec(Command(script="cat; exit 4", stdin=b"in"))).stdout == b"in"


async def test_a_session_is_one_websocket_and_dies_whole(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    box = await ready(substrate)
    session = await box.open_session()
    for _ in range(2):
        assert (await session.exec(Command(script="echo out"))).stdout == b"out\n"
    assert standin.requests.count("exec") == 1
    with pytest.raises(ExecTimeout):
        await session.exec(Command(script="sleep 60 & sleep 61", timeout_s=0.3))
    await standin.leaves(1, 1)
    with pytest.raises(SandboxLost):
        await session.exec(Command(script="true"))
    await session.close()


async def test_another_pod_with_the_same_name_is_left_alone(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    box = await ready(substrate)
    found = await substrate.find()
    await box.destroy()
    await ready(substrate)
    await substrate.reap(found[0])
    assert standin.left() == (1, 1)


async def test_find_reads_every_page(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taxtui.substrates.kubernetes.api.PAGE", 2)
    for trial in range(5):
        await substrate.create(spec(trial), Marks())
    assert len(await substrate.find("r1")) == 5


async def test_a_token_from_a_credential_plug_in(standin: KubernetesStandin, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
        f'"status": {{"token": "{TOKEN}"}}}}\'\n'
    )
    plugin.chmod(0o755)
    call = f'{{"exec": {{"apiVersion": "client.authentication.k8s.io/v1", "command": "{plugin}"}}}}'
    text = standin.kubeconfig.read_text()
    standin.kubeconfig.write_text(text.replace(f'{{"token": "{TOKEN}"}}', call))
    async with KubernetesSubstrate(options(standin)) as substrate:
        assert (await substrate.check()).ok


@pytest.mark.parametrize("session", [False, True])
async def test_a_node_that_dies_silently_does_not_hold_a_command_until_its_timeout(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, session: bool
) -> None:
    box = await ready(substrate)
    shell = await box.open_session() if session else box
    running = asyncio.ensure_future(shell.exec(Command(script="touch begun; sleep 60", timeout_s=60)))
    (place,) = standin.pods.places.values()
    await until(place.begun, "the command has begun")
    standin.pods.vanish(box.name)
    with pytest.raises(SandboxLost, match="NodeLost"):
        await running
    await box.destroy()


# -- cancelled at each await


async def sweep(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    """Find and reap like the runner and the watchdog, also after requests that are still under way."""
    for _ in range(4):
        for found in await substrate.find("r1"):
            await substrate.reap(found)
        await asyncio.sleep(0.02)
    await standin.leaves(0, 0)


async def test_a_cancelled_create_leaves_nothing(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    async for _ in cancellations(lambda number: substrate.create(spec(number), Marks())):
        await sweep(substrate, standin)
    assert len(await substrate.find("r1")) == 1, "the create that was not cancelled"
    await sweep(substrate, standin)
