"""How long a plan is said to take, against recordings whose durations are known to the nanosecond."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from taxtui.plan.spec import Plan
from taxtui.report.plan_time import HistoryReader, PastTrial, expect, time_words
from tests.taxtui.tui import story
from tests.taxtui.tui.earlier import RUNC, TRIAL_NS, never, only_here, plan, started, told, write
from tests.taxtui.tui.story import MS, S


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the recordings are."""
    only_here(tmp_path, monkeypatch)
    return tmp_path


def words(asked: Plan, trials: list[PastTrial], **variants: str) -> str:
    return time_words(asked, expect(asked, trials, variants))


def test_a_plan_takes_the_mean_of_the_recorded_trials(folder: Path) -> None:
    write(folder, "a", told([RUNC]))
    table = HistoryReader().read(never)
    [one] = expect(plan({"warmup": 2}), table, {"docker": "runc"})
    assert one.trial_ns == TRIAL_NS
    assert one.wall_ns == 102 * TRIAL_NS
    assert words(plan(), table, docker="runc") == "~12 s, estimated from 1 recording"


@pytest.mark.parametrize(
    ("block", "wall_ns"),
    [
        ({"concurrency": 4}, 25 * TRIAL_NS),
        ({"concurrency": 4, "trials": 101}, 26 * TRIAL_NS),
        ({"concurrency": 4, "warmup": 3}, 28 * TRIAL_NS),  # warm-ups run one at a time
        ({"concurrency": 4, "arrival": "burst"}, 25 * TRIAL_NS),
        ({"think": "2s"}, 100 * (TRIAL_NS + 10 * 2 * S)),
    ],
)
def test_concurrent_trials_share_the_time(folder: Path, block: Mapping[str, Any], wall_ns: int) -> None:
    write(folder, "a", told([RUNC]))
    [one] = expect(plan(block), HistoryReader().read(never), {})
    assert one.wall_ns == wall_ns


@pytest.mark.parametrize(("actions", "difference"), [(12, 2), (9, -1), (30, 30 - 50), (45, 45 - 50), (60, 60 - 50)])
def test_a_length_that_was_not_recorded_comes_from_the_nearest(folder: Path, actions: int, difference: int) -> None:
    write(folder, "a", told([RUNC, story.cell(1, "docker", "runc", actions=50)]))
    nearest_ns = TRIAL_NS + (40 * 5 * MS if actions in (45, 60) else 0)
    if actions == 30:  # as far from 10 as from 50
        nearest_ns, difference = TRIAL_NS, 30 - 10
    [one] = expect(plan({"actions": [actions]}), HistoryReader().read(never), {})
    assert one.trial_ns == nearest_ns + difference * 5 * MS


def test_the_newest_recording_of_a_cell_counts(folder: Path) -> None:
    write(folder, "z_old", started(told([RUNC, story.cell(1, "docker", "runc", "T1")], create_ns=4 * S), 1_000))
    write(folder, "a_new", started(told([RUNC]), 2_000))
    both = plan({"tiers": ["T0", "T1"], "trials": 10})
    t0, t1 = expect(both, HistoryReader().read(never), {})
    assert (t0.trial_ns, t1.trial_ns) == (TRIAL_NS, TRIAL_NS + 3960 * MS)
    assert words(both, HistoryReader().read(never)) == "~42 s, estimated from 2 recordings"


@pytest.mark.parametrize("change", [{"provenance": "stand_in"}, {"think": "8s"}, {"acquire": "reset"}])
def test_only_plain_measured_trials_estimate_plain_trials(folder: Path, change: Mapping[str, str]) -> None:
    write(folder, "a", told([msgspec.structs.replace(RUNC, **change)]))
    assert words(plan(), HistoryReader().read(never)) == "unknown for docker: no recording of it yet"


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"substrates": ["docker", "ec2"]}, "~12 s + ec2 (not measured yet), estimated from 1 recording"),
        ({"tiers": ["T0", "T2"]}, "~12 s + docker T2 (not measured yet), estimated from 1 recording"),
        ({"modes": ["exec", "session"]}, "~12 s + docker T0 session (not measured yet), estimated from 1 recording"),
        ({"substrates": ["a", "b", "c", "d", "e"]}, "unknown for a, b, c and 2 more: no recording of it yet"),
    ],
)
def test_what_is_not_measured_is_named_as_coarsely_as_that_is_true(
    folder: Path, block: Mapping[str, Any], said: str
) -> None:
    write(folder, "a", told([RUNC]))
    assert words(plan(block), HistoryReader().read(never)) == said


@pytest.mark.parametrize(
    ("budget", "block", "said"),
    [
        ("3m", {}, "~12 s, estimated from 1 recording"),
        ("5s", {}, "at most 5 s, the budget (~12 s without it, estimated from 1 recording)"),
        (
            "3m",
            {"substrates": ["docker", "ec2"]},
            "at most 3 min, the budget (~12 s + ec2 (not measured yet) without it, estimated from 1 recording)",
        ),
    ],
)
def test_a_budget_cuts_the_time(folder: Path, budget: str, block: Mapping[str, Any], said: str) -> None:
    write(folder, "a", told([RUNC]))
    assert words(plan(block, budget=budget), HistoryReader().read(never)) == said


def test_a_recording_that_has_changed_is_read_again(folder: Path) -> None:
    path = write(folder, "a", told([RUNC]))
    reader = HistoryReader()
    reader.read(never)
    path.unlink()
    write(folder, "a", told([RUNC], create_ns=S), age_s=5)
    [one] = expect(plan(), reader.read(never), {})
    assert one.trial_ns == TRIAL_NS + 960 * MS
    path.unlink()
    assert words(plan(), reader.read(never)).startswith("unknown")


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: data[:-40] + b"x" * 40 + data[:50]])
def test_what_comes_before_the_damage_counts(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    path = write(folder, "a", told([RUNC], trials=40))
    path.write_bytes(damage(path.read_bytes()))
    (folder / "b.msgpack").write_bytes(b"no recording at all")
    (folder / "c.msgpack").write_bytes(b"")
    assert words(plan(), HistoryReader().read(never)) == "~12 s, estimated from 1 recording"
