"""Runs ``taxtui`` as a process of its own in a home of its own, and says what it left running or lying around."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from click.testing import CliRunner

from costmodel import CostModelError
from costmodel.recording.events import Event, Header, RunFinished
from costmodel.recording.follower import read_events
from taxtui.cli import app
from taxtui.errors import TaxtuiError
from tests.support import waiting

TAXTUI: Final = (sys.executable, "-m", "taxtui")
PLAIN: Final = ("-s", "local:isolation=plain")
CLOCK: Final = r"\d+(:\d\d)+"
"""How long a run has lasted, as it says it; no test knows."""
SHORT: Final = ("-t", "T0", "-n", "2", "--trials", "2", "--warmup", "0", "--mode", "exec")

BUSY: Final = re.compile(r"taxtui: this machine is busy: .*\n")


def printed(*words: object, code: int = 0) -> str:
    """Run ``taxtui`` in this process; return its standard output, or its one-line error with this exit code."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(result.exception, TaxtuiError | CostModelError):
        assert result.exception.exit_code == code, result.exception
        assert "\n" not in str(result.exception)
        return str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


class Finished(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The only line on stderr."""
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, f"not one line: {self.err}"
        return lines[0]


class Home:
    """State, data, temporary files and working directory of a test's commands; the path marks all their processes."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        for name in ("cwd", "state", "data", "tmp"):
            (folder / name).mkdir(parents=True)
        self.cwd = folder / "cwd"
        self._started: list[subprocess.Popen[bytes]] = []
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_DATA_HOME": str(folder / "data"),
            "TMPDIR": str(folder / "tmp"),
            **variables,
        }

    def start(self, *args: str, prefix: Sequence[str] = (), **popen: object) -> subprocess.Popen[bytes]:
        """Start ``taxtui`` in a session of its own, with pipes for stdout and stderr unless told otherwise."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options = {"cwd": self.cwd, "env": self.env, "start_new_session": True, **streams, **popen}
        self._started.append(subprocess.Popen([*prefix, *TAXTUI, *args], **options))  # type: ignore[call-overload]
        return self._started[-1]

    def run(self, *args: str, prefix: Sequence[str] = (), **popen: object) -> Finished:
        return ended(self.start(*args, prefix=prefix, **popen))

    def processes(self) -> dict[int, str]:
        """Every living process that has this home in its environment, arguments or working directory, and its name."""
        marker = os.fsencode(self.folder)
        return {pid: name for pid, name in marked(marker) if pid != os.getpid()}

    def sandboxes(self) -> list[str]:
        """Directories of local sandboxes that are still there."""
        return sorted(path.name for root in (self.folder / "tmp").glob("taxtui-*") for path in root.iterdir())

    def ledger(self) -> list[str]:
        """Runs that were not cleaned."""
        return sorted(path.name for path in (self.folder / "state").rglob("*.json"))

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()

    def running(self) -> list[Path]:
        """The local sandboxes whose command has made a file called ``started``."""
        return list((self.folder / "tmp").glob("taxtui-*/*/work/started"))

    def assert_nothing_left(self) -> None:
        assert self.processes() == {}
        assert self.sandboxes() == []
        assert self.ledger() == []


def ended(process: subprocess.Popen[bytes]) -> Finished:
    """Wait for it and take its last words; never a traceback among them."""
    try:
        out, err = process.communicate(timeout=waiting.left_s())
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"does not end; it said: {err!r}") from None
    told = (err or b"").decode()
    for busy in BUSY.findall(told):  # by whatever else the machine does during a test
        told = told.replace(busy, "")
    finished = Finished(process.returncode, (out or b"").decode(), told)
    assert "Traceback" not in finished.err, finished.err
    assert "Fatal Python error" not in finished.err, finished.err
    return finished


def events(path: Path) -> list[Event]:
    """Everything in a recording so far, finished or not."""
    got: list[Event] = []
    read_events(path, got.append)
    return got


def last(path: Path) -> RunFinished:
    """The last event of a recording, which must be its orderly end."""
    event = events(path)[-1]
    assert isinstance(event, RunFinished)
    return event


def run_id(path: Path) -> str:
    header = events(path)[0]
    assert isinstance(header, Header)
    return header.run_id


def containers(run: str) -> list[str]:
    """Names of the containers with this run's label, in whatever state."""
    listing = ["docker", "ps", "--all", f"--filter=label=taxtui.run={run}", "--format={{.Names}}"]
    return subprocess.check_output(listing, text=True).split()


def marked(marker: bytes) -> list[tuple[int, str]]:
    """Living processes with this in their environment, arguments or working directory: id and name."""
    found = []
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                with contextlib.suppress(OSError):  # it has ended, or is another user's
                    folder = Path(entry.path)
                    if _has(folder, marker):
                        name, state = (folder / "stat").read_text().partition("(")[2].rpartition(")")[::2]
                        if state.split()[0] != "Z":
                            found.append((int(folder.name), name))
    return found


def _has(process: Path, marker: bytes) -> bool:
    for about in ("environ", "cmdline"):
        with io.FileIO(f"{process}/{about}") as file:  # of every process there is, again and again: quickly
            if marker in file.readall():
                return True
    return marker in os.fsencode((process / "cwd").readlink())


def tier(path: Path, script: str, **more: str) -> Path:
    """A tier of one step, for commands that take as long as a test wants."""
    extra = "".join(f"{key} = {value!r}\n" for key, value in more.items())
    path.write_text(f'name = "X"\ntitle = "x"\nrequires = []\n{extra}[[cycle]]\nname = "one"\nrun = {script!r}\n')
    return path


def without_modules(folder: Path, *names: str) -> Mapping[str, str]:
    """Variables under which Python behaves as if these packages were not installed."""
    blocker = f"""import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""
    return _customized(folder, blocker)


def with_a_bug(folder: Path, module: str, method: str, statement: str) -> Mapping[str, str]:
    """Variables under which a method of taxtui's, ``Class.name``, executes this statement instead."""
    bug = f"def bug(*args, **kwargs):\n    {statement}\n"
    return _customized(folder, f"import {module} as module\n{bug}module.{method} = bug\n")


def _customized(folder: Path, program: str) -> Mapping[str, str]:
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(program)
    return {"PYTHONPATH": str(folder)}
