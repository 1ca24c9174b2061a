"""An image that a node had to pull is marked in the trial, and asking for it costs no command and no removal."""

from __future__ import annotations

import asyncio

import pytest

from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import sandbox as kubernetes_sandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.sandboxes import spec
from tests.support.standins.kubernetes_cluster import IMAGE_BYTES
from tests.support.standins.kubernetes_standin import KubernetesStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

MS = 1_000_000
PULL = {"pulling", "pulled"}


@pytest.fixture(autouse=True)
def _any_pull_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "PULL_S", 0.0)


async def live(standin: KubernetesStandin, substrate: KubernetesSubstrate, answers: int = 1) -> tuple[Marks, list[str]]:
    """One pod's marks, and what was asked until it was to be removed.

    Its deletion ends only when ``answers`` lists of events were asked for and the loop has had time for the last.
    """
    marks = Marks()
    standin.requests.clear()
    made = await substrate.create(spec(), marks)
    await made.wait_ready(marks)
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
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
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
    assert (marks.moved("pulled"), marks.moved("pulling")) == (IMAGE_BYTES, -1)
    # The next one finds the image there: no mark, and what is asked before the removal is the same either way.
    warm, asked_warm = await live(standin, substrate)
    assert not PULL & {name for name, _, _ in warm.seen}
    assert "events" not in asked
    assert [kind for kind in asked if kind not in ("list", "watch")] == asked_warm == ["create", "exec"]


async def test_without_the_right_nothing_is_said_and_it_is_asked_for_once(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    standin.denied.add("list events")
    for answers in (1, 0):
        standin.pods.cold = True
        marks, _ = await live(standin, substrate, answers)
        assert not PULL & {name for name, _, _ in marks.seen}
        assert marks.notices == []


async def test_a_duration_that_cannot_have_been_is_not_recorded(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = standin.pods._tell
    text = 'Successfully pulled image "x" in 1h0m0s (1h0m0s including waiting). Image size: 5 bytes.'
    monkeypatch.setattr(standin.pods, "_tell", lambda pod, second, *_: tell(pod, second, "Normal", "Pulled", text))
    marks, _ = await live(standin, substrate)
    assert not PULL & {name for name, _, _ in marks.seen}


async def test_always_pulling_moves_an_unknown_number_of_bytes(standin: KubernetesStandin) -> None:
    options = KubernetesOptions(kubeconfig=str(standin.kubeconfig), pull_policy="Always")
    async with KubernetesSubstrate(options) as substrate:
        standin.pods.cold = True
        marks, _ = await live(standin, substrate)
    assert {name for name, _, _ in marks.seen} >= PULL
    assert marks.moved("pulled") == -1


async def test_a_pod_that_ran_soon_is_not_asked(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "PULL_S", 600.0)
    marks, _ = await live(standin, substrate, answers=0)
    assert not PULL & {name for name, _, _ in marks.seen}
