"""Pipes, devices and mangled files: refused in one line, and no pipe blocks."""

from __future__ import annotations

import contextlib
import os
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import costmodel
from costmodel.errors import CostModelError, SourceError
from costmodel.regular_file import open_regular, read_regular
from taxtui.cli import app
from taxtui.errors import RecordingError, TaxtuiError
from taxtui.importers import registry
from taxtui.importers.importing import import_files
from taxtui.runner.fanout.resume import ResumeState
from tests.support.fuzz import hostile
from tests.support.fuzz.fuzzing import TARGETS, corpus, made, tried
from tests.support.importing import FORMATS, sample_files

DEMAND = ("--trajectories", "1000", "--workers", "10")
GOLDEN = str(hostile.GOLDEN)
NOT_REGULAR = "not a regular file"


def a_device(path: Path) -> None:
    path.symlink_to("/dev/null")  # a test that fails should not fill the memory, as /dev/zero would


def a_socket(path: Path) -> None:
    # The path of a socket may have 108 bytes.
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path.name)


def refusal(*words: str) -> str:
    """The one line with which a command ends."""
    done = CliRunner().invoke(app, words, standalone_mode=False)
    if done.return_value == RecordingError.exit_code:  # of several files: told by then
        [line] = done.output.splitlines()
        return line
    assert isinstance(done.exception, TaxtuiError | CostModelError), (done.exception, done.output)
    assert "\n" not in str(done.exception)
    return str(done.exception)


@pytest.mark.parametrize("make", [os.mkfifo, a_device, a_socket])
def test_only_regular_files_are_opened(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x")
    for refused in (lambda path: open_regular(path), lambda path: read_regular(path, 10)):
        with pytest.raises(OSError, match=NOT_REGULAR) as raised:
            refused(tmp_path / "x")
        assert raised.value.strerror is not None


def test_a_link_is_followed_and_the_size_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 10) == b"0123456789"
    (tmp_path / "x.msgpack").symlink_to(hostile.GOLDEN)
    assert costmodel.load(tmp_path / "x.msgpack").trials == costmodel.load(hostile.GOLDEN).trials  # type: ignore[union-attr]
    with pytest.raises(OSError, match="larger than 0 MiB"):
        read_regular(tmp_path / "link", 9)
    with pytest.raises(OSError, match="larger than"):
        read_regular(Path("/proc/self/maps"), 100)  # its size is 0 by stat


@pytest.mark.parametrize(
    "words",
    [
        ("report", "FILE"),
        ("project", "FILE", *DEMAND),
        ("compare", "FILE", GOLDEN),
        ("compare", GOLDEN, "FILE"),
        ("export", "FILE", "--format", "csv", "-o", "OUT"),
        ("recordings", "info", "FILE"),
        ("recordings", "verify", "FILE"),
    ],
)
def test_every_command_refuses_what_is_no_regular_file(words: tuple[str, ...], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.msgpack")
    places = {"FILE": str(tmp_path / "x.msgpack"), "OUT": str(tmp_path / "out")}
    assert NOT_REGULAR in refusal(*(places.get(word, word) for word in words))
    assert not (tmp_path / "out").exists()
    with pytest.raises(SourceError, match=NOT_REGULAR):
        ResumeState(tmp_path / "x.msgpack")


def test_a_site_leaves_out_what_is_no_regular_file_or_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.msgpack").write_bytes(hostile.GOLDEN.read_bytes())
    os.mkfifo(tmp_path / "logs" / "x.msgpack")
    done = CliRunner().invoke(app, ["site", str(tmp_path / "logs"), "-o", str(tmp_path / "out")], standalone_mode=False)
    assert done.exception is None or isinstance(done.exception, TaxtuiError | CostModelError)
    assert NOT_REGULAR in f"{done.output}{done.exception}"


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", [*FORMATS, "inspect"])
def test_every_importer_refuses_what_is_no_regular_file(name: str, tmp_path: Path) -> None:
    path = Path("x.eval") if name == "inspect" else next(iter(sample_files(name)))[0]
    os.mkfifo(tmp_path / path.name)
    with pytest.raises(TaxtuiError, match=NOT_REGULAR):
        import_files(registry.load(name), [tmp_path / path.name], tmp_path / "out")
    assert "has an unknown format" in refusal("import", str(tmp_path / path.name), "-o", str(tmp_path / "out"))


SEED = 20
EACH = {"importers": 250, "documents": 80, "projections": 60}
EXECUTIONS = 600
"""Of a target that is in memory."""
FOUND = list(corpus())


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_mangled_file_is_taken_or_refused_in_one_line(target: str) -> None:
    told: Counter[str] = Counter()
    for number in range(EACH.get(target, EXECUTIONS)):
        word, why = tried(target, made(target, SEED, number))
        assert not why, f"python -m tests.support.fuzz.fuzzing --target {target} --seed {SEED} --number {number}: {why}"
        told[word] += 1
    assert len(told) > 1 or target == "text", "it is never taken, or never refused"


@pytest.mark.parametrize(("target", "path"), FOUND, ids=[f"{target}-{path.stem}" for target, path in FOUND])
def test_what_once_failed_fails_no_more(target: str, path: Path) -> None:
    assert tried(target, path.read_bytes())[1] == ""
