"""Many recordings are read by several processes: the same trials, the same error for a bad one, nothing left behind."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import pickle
import signal
from pathlib import Path

import msgspec
import pytest

from costmodel.errors import SourceError
from costmodel.recording.load import read, read_all, read_recordings
from costmodel.recording.parallel import processes
from costmodel.recording.parallel.collecting import paused
from costmodel.recording.published import Published
from costmodel.recording.reader import Recording
from tests.support.costmodel_files import trial, write

RECORDINGS = Path(__file__).parents[2] / "recordings"
ESSAY = Path(__file__).parents[2] / "scenarios/published/essay.toml"


def files(folder: Path, count: int = 3) -> list[Path]:
    return [write(folder / f"{n}.msgpack", [trial(0, create=n + 1), trial(1)], run_id=f"run-{n}") for n in range(count)]


def whole(found: Recording | Published) -> object:
    """All that a recording holds, to be compared."""
    assert isinstance(found, Recording)
    trials = [(cell.identity, cell.untold, *map(msgspec.structs.astuple, cell.trials)) for cell in found.cells]
    return found.name, found.run_id, found.whole, found.lag_p99_ns, trials


def test_they_are_what_one_process_reads_in_their_order(tmp_path: Path) -> None:
    paths = [*files(tmp_path), RECORDINGS / "small.msgpack"]
    assert [whole(one) for one in read_all(paths, processes=2)] == [whole(read(path)) for path in paths]
    *_, published = read_all([*paths, ESSAY], processes=2)
    assert isinstance(published, Published)
    assert not multiprocessing.active_children()


def test_a_recording_gets_to_another_process_as_it_is_with_one_key_for_each_run() -> None:
    found = read_recordings([RECORDINGS / "kubernetes2.msgpack"])[0]
    copied = pickle.loads(pickle.dumps(found))
    assert whole(copied) == whole(found)
    keys = {id(one.run) for one in copied.cells[0].trials}
    assert len(keys) == len({one.run for one in copied.cells[0].trials})


def test_the_first_that_cannot_be_read_is_the_error(tmp_path: Path) -> None:
    paths = files(tmp_path)
    for bad in paths[1:]:
        bad.write_bytes(b"\xc9 this is none")
    with pytest.raises(SourceError) as alone:
        read_recordings(paths, processes=1)
    with pytest.raises(SourceError) as found:
        read_recordings(paths, processes=2)
    assert (str(found.value), found.value.offset) == (str(alone.value), alone.value.offset)
    assert "1.msgpack" in str(found.value)
    assert not multiprocessing.active_children()


def test_little_to_read_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = files(tmp_path)
    assert processes.worth(paths) == 1
    assert processes.worth([tmp_path / "none", tmp_path / "none"]) == 1
    monkeypatch.setattr(processes, "WORTH_BYTES", 0)
    assert processes.worth(paths[:1]) == 1
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert processes.worth(paths) == 2


def test_a_process_that_is_killed_is_one_line() -> None:
    with pytest.raises(SourceError, match="was killed"), processes.pool(1) as workers:
        workers.submit(signal.raise_signal, signal.SIGKILL).result()
    assert not multiprocessing.active_children()


def test_other_children_of_the_caller_outlive_a_pool_that_ends_by_an_exception() -> None:
    context = multiprocessing.get_context("fork")
    other = context.Process(target=signal.pause, daemon=True)
    other.start()
    before = set(multiprocessing.active_children())
    try:
        with pytest.raises(ValueError, match="of the caller"), processes.pool(2) as workers:
            raise workers.submit(ValueError, "of the caller").result()
        assert set(multiprocessing.active_children()) == before
        other.join(0.2)
        assert other.is_alive()
    finally:
        other.kill()
        other.join()


def test_no_garbage_is_collected_while_many_objects_are_made_and_afterwards_as_before() -> None:
    with paused():
        assert not gc.isenabled()
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with contextlib.suppress(ValueError), paused():
        raise ValueError("this")
    assert gc.isenabled()


def test_trials_of_a_run_have_one_key(tmp_path: Path) -> None:
    [found] = read_recordings(files(tmp_path, 1))
    assert len({id(one.run) for cell in found.cells for one in cell.trials}) == 1
