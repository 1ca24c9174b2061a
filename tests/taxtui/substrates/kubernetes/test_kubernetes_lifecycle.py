"""The Kubernetes substrate against a stand-in API server: TLS, token, real commands, and pulls of images."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from taxtui.errors import SubstrateUnavailable
from taxtui.plan.spec import Command
from taxtui.recording import digest
from taxtui.sandboxes.protocol import Marks, Sandbox
from taxtui.substrates.kubernetes import sandbox as kubernetes_sandbox
from taxtui.substrates.kubernetes.sandbox import LOST_S
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.sandboxes import RUN, ready, spec
from tests.support.standins.kubernetes_cluster import IMAGE_BYTES, NODE
from tests.support.standins.kubernetes_standin import TOKEN, VERSION, KubernetesStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

Connect = Callable[..., KubernetesSubstrate]


async def test_check_reports_the_version_and_each_missing_permission_and_makes_nothing(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    assert substrate.provenance == "stand_in"
    found = await substrate.check()
    assert (found.ok, found.version) == (True, VERSION)
    assert found.latency_ns > 0
    standin.denied = {"watch pods", "create pods/exec"}
    found = await substrate.check()
    assert not found.ok
    assert found.detail.endswith("watch pods, create pods/exec")
    assert "docs/substrates/kubernetes.md" in found.fix
    assert standin.left() == (0, 0)


async def test_wrong_token_and_unknown_authority_are_refused(standin: KubernetesStandin, connect: Connect) -> None:
    text = standin.kubeconfig.read_text()
    standin.kubeconfig.write_text(text.replace(TOKEN, "another"))
    with pytest.raises(SubstrateUnavailable, match="401"):
        await connect().__aenter__()
    async with KubernetesStandin() as other:
        standin.kubeconfig.write_text(text.replace(str(standin.port), str(other.port)))
        with pytest.raises(SubstrateUnavailable, match="Certificate"):
            await connect().__aenter__()
        assert other.requests == []


async def test_a_token_from_a_credential_plug_in(standin: KubernetesStandin, connect: Connect, tmp_path: Path) -> None:
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
    async with connect() as substrate:
        assert (await substrate.check()).ok


async def test_marks_come_in_order_and_from_one_watch(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    marks = [Marks() for _ in range(5)]
    boxes = await asyncio.gather(*(ready(substrate, marks=mark) for mark in marks))
    for mark in marks:
        names = [name for name, _, _ in mark.seen]
        assert names == ["accepted", "scheduled", "initialized", "sandbox ready", "running", "ready"]
        assert [at for _, at, _ in mark.seen] == sorted(at for _, at, _ in mark.seen)
        assert mark.node == digest(NODE)
    assert standin.requests.count("watch") == 1
    assert "get" not in standin.requests
    await asyncio.gather(*(box.destroy() for box in boxes))
    assert standin.left() == (0, 0)


async def test_a_command_killed_by_a_signal_is_a_result(box: Sandbox) -> None:
    began_ns = time.monotonic_ns()
    got = await box.exec(Command(script="kill -9 $$"))
    waited_ns = (time.monotonic_ns() - began_ns) - (got.ended_ns - got.started_ns)
    assert got.exit_code == 137
    assert waited_ns >= LOST_S * 1e9, "waiting for the pod's fate is not the command's time"


async def test_an_old_server_without_v5(standin: KubernetesStandin, box: Sandbox) -> None:
    standin.exec_protocols = ("v4.channel.k8s.io",)
    assert (await box.exec(Command(script="cat; exit 4", stdin=b"in"))).stdout == b"in"


async def test_a_session_is_one_websocket_that_leaves_no_shell(standin: KubernetesStandin, box: Sandbox) -> None:
    before = standin.requests.count("exec")
    session = await box.open_session()
    for _ in range(2):
        assert (await session.exec(Command(script="echo out"))).stdout == b"out\n"
    assert standin.requests.count("exec") == before + 1
    await session.close()
    await standin.leaves(1, 1)


async def test_another_pod_with_the_same_name_is_left_alone(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    box = await ready(substrate, 1)
    [found] = await substrate.find()
    await box.destroy()
    await ready(substrate, 1)
    await substrate.reap(found)
    assert standin.left() == (1, 1)


async def test_find_reads_every_page(substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taxtui.substrates.kubernetes.api.PAGE", 2)
    for _ in range(5):
        await substrate.create(spec(), Marks())
    assert len(await substrate.find(RUN)) == 5


MS = 1_000_000
PULL = {"pulling", "pulled"}


async def live(standin: KubernetesStandin, substrate: KubernetesSubstrate, answers: int = 1) -> tuple[Marks, list[str]]:
    """One pod's marks, and what was asked until it was to be removed.

    Its deletion ends only when ``answers`` lists of events were asked for and the loop has had time for the last.
    """
    marks = Marks()
    standin.requests.clear()
    made = await ready(substrate, marks=marks)
    assert (await made.exec(Command(script="true"))).exit_code == 0
    asked = list(standin.requests)
    standin.pods.stuck = True
    removal = asyncio.ensure_future(made.destroy())
    await until(lambda: standin.requests.count("delete") == 1, "the deletion is asked for")
    await until(lambda: standin.requests.count("events") == answers, "the events are asked for")
    await until(lambda: not any("_mark_pull" in repr(task) for task in asyncio.all_tasks()), "they are answered")
    standin.pods.release()
    await removal
    return marks, asked


async def test_a_cold_pull_is_marked_with_its_length_and_the_images_size(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "PULL_S", 0.0)
    standin.pods.cold = True
    marks, asked = await live(standin, substrate)
    seen = {name: (at_ns, resolution_ns) for name, at_ns, resolution_ns in marks.seen}
    assert seen["pulled"][0] == seen["running"][0]
    assert seen["pulled"][0] - seen["pulling"][0] == 50 * MS
    # The kubelet pulls after it has made the pod's sandbox, unless the watch saw that too late for such a pull.
    bounds = [seen[name][0] - seen[name][1] for name in ("sandbox ready", "scheduled")]
    began_ns = next(at_ns for at_ns in bounds if seen["running"][0] - at_ns >= 50 * MS)
    for name in PULL:
        assert seen[name][1] == seen["running"][0] - began_ns - 50 * MS + MS
    assert marks.moved_bytes == {"pulled": IMAGE_BYTES}
    # The next one finds the image there: no mark, and what is asked before the removal is the same either way.
    warm, asked_warm = await live(standin, substrate)
    assert not PULL & {name for name, _, _ in warm.seen}
    assert "events" not in asked
    assert [kind for kind in asked if kind not in ("list", "watch")] == asked_warm == ["create", "exec"]


async def test_always_pulling_moves_an_unknown_number_of_bytes(
    standin: KubernetesStandin, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "PULL_S", 0.0)
    async with connect(pull_policy="Always") as substrate:
        standin.pods.cold = True
        marks, _ = await live(standin, substrate)
    assert {name for name, _, _ in marks.seen} >= PULL
    assert not marks.moved_bytes


async def test_a_pull_that_is_short_impossible_or_not_ours_to_see_is_not_recorded(
    standin: KubernetesStandin, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that ran soon is not asked at all, and a missing right is met once and not mentioned."""

    async def unmarked(*answers: int) -> bool:
        async with connect() as substrate:
            for count in answers:
                standin.pods.cold = True
                marks, _ = await live(standin, substrate, count)
                if PULL & {name for name, _, _ in marks.seen} or marks.notices:
                    return False
        return True

    monkeypatch.setattr(kubernetes_sandbox, "PULL_S", 600.0)
    assert await unmarked(0)
    monkeypatch.setattr(kubernetes_sandbox, "PULL_S", 0.0)
    standin.denied = {"list events"}
    assert await unmarked(1, 0)
    standin.denied.clear()
    tell = standin.pods._tell
    text = 'Successfully pulled image "x" in 1h0m0s (1h0m0s including waiting). Image size: 5 bytes.'
    monkeypatch.setattr(standin.pods, "_tell", lambda pod, second, *_: tell(pod, second, "Normal", "Pulled", text))
    assert await unmarked(1)
