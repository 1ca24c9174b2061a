"""Several recordings are read in their order; the first unreadable file is the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import load, load_all
from costmodel.errors import SourceError
from costmodel.recording.published import Published
from costmodel.recording.reader import Recording, read_recordings
from tests.support.cost_model.costmodel_files import trial, write

RECORDINGS = Path(__file__).parents[3] / "recordings"
ESSAY = Path(__file__).parents[3] / "scenarios/published/essay.toml"


def files(folder: Path, count: int = 3) -> list[Path]:
    return [write(folder / f"{n}.msgpack", [trial(0, create=n + 1), trial(1)], run_id=f"run-{n}") for n in range(count)]


def test_recordings_and_published_figures_are_read_in_their_order(tmp_path: Path) -> None:
    paths = [*files(tmp_path), RECORDINGS / "small.msgpack", ESSAY]
    *recordings, published = load_all(paths)
    small = load(RECORDINGS / "small.msgpack")
    assert isinstance(small, Recording)
    run_ids = [recording.run_id for recording in recordings if isinstance(recording, Recording)]
    assert run_ids == ["run-0", "run-1", "run-2", small.run_id]
    assert isinstance(published, Published)


def test_the_first_unreadable_file_is_the_error(tmp_path: Path) -> None:
    paths = files(tmp_path)
    for bad in paths[1:]:
        bad.write_bytes(b"\xc9 this is none")
    with pytest.raises(SourceError, match=r"1\.msgpack"):
        read_recordings(paths)


def test_trials_of_a_run_have_one_key(tmp_path: Path) -> None:
    [found] = read_recordings(files(tmp_path, 1))
    assert len({id(one.run) for cell in found.cells for one in cell.trials}) == 1
