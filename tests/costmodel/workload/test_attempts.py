"""Attempts at the recorded length, and their columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import TrainingRun, load
from costmodel.recording.breakdown import UNKNOWN
from costmodel.training.length import Length
from costmodel.workload.pool import attempts, pools
from tests.support.cost_model.costmodel_files import S, cell, trial, write

RECORDINGS = Path(__file__).parents[3] / "recordings"
PLAIN = TrainingRun(trajectories=1000, workers=10)


@pytest.mark.parametrize("name", ["small", "kubernetes2", "varied"])
@pytest.mark.parametrize("cleanup", [False, True])
def test_an_attempt_at_the_recorded_length_is_the_trial(tmp_path: Path, name: str, cleanup: bool) -> None:
    """Failures at every length, think time, clean-up, CPU time, and an unknown in-sandbox time are among the trials."""
    trials = [
        trial(
            n,
            create=(2 + n % 5) * S,
            actions=[S + n] * (3 if n % 7 else n % 4),
            runs=[(S // 2, UNKNOWN)[n == 5]] * (3 if n % 7 else n % 4),
            thinks=[S] * 3 if n % 7 and n % 3 else (),
            cleanup=n % 2 * S,
            queued=n % 3 * S,
            outcome="ok" if n % 7 else "failed",
        )
        for n in range(40)
    ]
    path = RECORDINGS / f"{name}.msgpack"
    if name == "varied":
        path = write(tmp_path / "varied.msgpack", trials, cell(length="recorded"))
    asked = TrainingRun(trajectories=1, workers=1, include_cleanup=cleanup)
    for pool in pools([load(path)]):
        found = attempts(pool, None, asked)
        for attempt, recorded in zip(found, pool.trials, strict=True):
            measures = recorded.measures
            cleanup_ns = (measures.cleanup_ns or 0) * cleanup
            assert (attempt.ok, attempt.held_ns) == (recorded.ok, measures.held_ns + cleanup_ns)
            assert (attempt.think_ns, attempt.queued_ns) == (measures.think_ns, measures.queued_ns)
            assert attempt.run_ns == (measures.work_ns if measures.divided else UNKNOWN)
            assert attempt.dispatch_ns == (measures.dispatch_ns if measures.divided else 0)
            assert attempt.harness_ns == measures.harness_ns
            assert attempt.sandbox_ns == recorded.sandbox_ns + (measures.cleanup_ns or 0)


def test_a_recording_without_trials_is_a_pool(tmp_path: Path) -> None:
    found = load(write(tmp_path / "a", []))
    assert found.trials == 0
    [pool] = pools([found])
    assert pool.length == Length.constant(3)
    assert pool.exposure is None
    assert pool.waiting_ns is None


def test_a_column_has_the_name_of_a_field(tmp_path: Path) -> None:
    [pool] = pools([load(write(tmp_path / "a", [trial(n, runs=[UNKNOWN, S, S]) for n in range(4)]))])
    assert not pool.run_known
    sample = attempts(pool, None, PLAIN)
    assert sample.run_ns == [UNKNOWN] * 4
    assert sample.unsplit_ns == [3 * S] * 4
    with pytest.raises(AttributeError, match="runs_ns"):
        _ = sample.runs_ns
