"""Trials as columns have the same values as the trials, of any recording."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from costmodel import TrainingRun
from costmodel.recording.breakdown import UNKNOWN
from costmodel.recording.load import read_recordings
from costmodel.recording.trial import RecordedTrial, TrialColumns
from costmodel.training.length import Length
from costmodel.training.run import Think
from costmodel.workload.attempts import Attempt, Sample
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import Pool, at_length, attempts, pools
from tests.support.cost_model.costmodel_files import S, cell, trial, write

RECORDINGS = Path(__file__).parents[3] / "recordings"
PLAIN = TrainingRun(trajectories=1000, workers=10)
THINKS = TrainingRun(trajectories=1000, workers=10, think=Think(2 * S, 0.5), include_cleanup=True)


def varied(folder: Path) -> list[Path]:
    """Two recordings of one cell: failures at every length, think time, clean-up, CPU time, a run that is unknown."""
    paths = []
    for number in range(2):
        told = [
            trial(
                n,
                create=(2 + n % 5) * S,
                actions=[S + n] * 3 if n % 7 else [S] * (n % 4),
                runs=[S // 2] * 3 if n % 7 else [S // 3] * (n % 4),
                cpus=[S // 4] * 3 if n % 7 and n % 11 else (),
                thinks=[S] * 3 if n % 7 and n % 3 else (),
                gaps=[5] * 3 if n % 7 and n % 2 else (),
                cleanup=n % 2 * S,
                queued=n % 3 * S,
                block=n // 6,
                repetition=n // 20,
                outcome="ok" if n % 7 else "failed",
            )
            for n in range(40)
        ]
        paths.append(write(folder / f"{number}.msgpack", told, cell(length="recorded"), run_id=f"run-{number}"))
    return paths


def alone(pool: Pool, training_run: TrainingRun) -> list[Attempt]:
    """Attempts at the recorded length, made one by one."""
    found = [at_length(t, i, len(t.durations_ns), pool.cycle, pool.contended) for i, t in enumerate(pool.trials)]
    cleanups = [t.measures.cleanup_ns or 0 for t in pool.trials]
    if not training_run.include_cleanup:
        return found
    return [
        msgspec.structs.replace(one, held_ns=one.held_ns + cleanups[one.trial], cleanup_ns=cleanups[one.trial])
        for one in found
    ]


@pytest.mark.parametrize("name", ["small", "kubernetes2", "varied"])
@pytest.mark.parametrize("training_run", [PLAIN, TrainingRun(trajectories=1, workers=1, include_cleanup=True)])
def test_attempts_by_column_are_those_made_one_by_one(tmp_path: Path, name: str, training_run: TrainingRun) -> None:
    paths = varied(tmp_path) if name == "varied" else [RECORDINGS / f"{name}.msgpack"]
    for pool in pools(read_recordings(paths)):
        pool.contended = 0.3
        found = attempts(pool, None, training_run)
        assert found.one_each
        assert list(found) == alone(pool, training_run)
        assert [type(one.ok) for one in found] == [bool] * len(found)


def test_the_length_that_was_recorded_is_no_other(tmp_path: Path) -> None:
    trials = [trial(n, outcome="ok" if n else "failed", actions=[S] * (3 if n else 2)) for n in range(6)]
    [pool] = pools([read_recordings([write(tmp_path / "a", trials)])[0]])
    assert attempts(pool, Length.constant(3), PLAIN).one_each
    assert not attempts(pool, Length.constant(2), PLAIN).one_each
    assert not attempts(pool, Length.between(2, 3), PLAIN).one_each
    kept = pool.columns
    pool.trials = list(pool.trials)[1:]  # as where a pool is remade
    assert len(pool.columns.ok) == len(kept.ok) - 1
    pool.trials[0].measures = msgspec.structs.replace(pool.trials[0].measures, work_ns=7)
    pool.trials = list(pool.trials)
    assert not attempts(pool, None, PLAIN).one_each, "what its commands do not amount to is made one by one"


def test_numbers_that_no_array_holds_stay_whole(tmp_path: Path) -> None:
    [plain] = read_recordings([write(tmp_path / "a", [trial(n) for n in range(4)])])
    most = (1 << 63) - 1
    for one in plain.cells[0].trials:
        one.measures = msgspec.structs.replace(one.measures, harness_ns=2 * most, queued_ns=5_000_000_000)
    columns = TrialColumns.of(plain.cells[0].trials)
    assert columns.harness_ns == [2 * most] * 4
    assert list(columns.queued_ns) == [5_000_000_000] * 4


def test_a_recording_without_trials_is_a_pool(tmp_path: Path) -> None:
    [found] = read_recordings([write(tmp_path / "a", [])])
    assert found.trials == 0
    [pool] = pools([found])
    assert pool.length == Length.constant(3)
    assert pool.exposure is None
    assert pool.waiting_ns is None


def test_a_column_has_a_value_of_each_attempt_and_no_other_name() -> None:
    first = at_length(RecordedTrial(("run", 0), 0), 0, 0, 1)  # type: ignore[arg-type]
    sample = Sample([first])
    assert sample.run_ns == [first.run_ns]
    assert Sample.of(sample) is sample
    with pytest.raises(AttributeError, match="runs_ns"):
        _ = sample.runs_ns


def test_equal_columns_are_estimated_once_and_their_idle_part_is_their_own(tmp_path: Path) -> None:
    [pool] = pools(read_recordings([write(tmp_path / "a", [trial(n, create=n * S) for n in range(9)])]))
    tally = Tally(attempts(pool, None, PLAIN), pool.trials)
    held = tally.estimate(lambda sample: sample.held_ns, lambda sample: sample.cold_ns)
    again = tally.estimate(lambda sample: list(sample.held_ns))
    assert again.parts is held.parts
    assert again.moving == again.value > held.moving


def test_unknown_is_no_time(tmp_path: Path) -> None:
    [pool] = pools(read_recordings([write(tmp_path / "a", [trial(n, runs=[UNKNOWN, S, S]) for n in range(4)])]))
    assert not pool.run_known
    assert list(pool.columns.run_ns) == [UNKNOWN] * 4
    assert list(pool.columns.unsplit_ns) == [3 * S] * 4
    assert list(pool.columns.waiting_ns) == [UNKNOWN] * 4
