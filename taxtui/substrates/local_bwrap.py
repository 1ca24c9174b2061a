"""The bubblewrap command line: what a local sandbox can see."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Final

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INSIDE: Final = Path("/sandbox")
"""Where the sandbox's own folders are, seen from inside."""
FIXTURES_INSIDE: Final = Path("/fixtures")

_SYSTEM: Final = ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix")
_PROBE_TIMEOUT_S: Final = 10.0


def wrap(folder: Path, fixtures: Path | None, *, network: bool) -> list[str]:
    """The arguments in front of a command: system folders read-only, an empty root, ``folder`` under INSIDE.

    Homes, other users' temporary files, sockets under /run and the host's processes are not there.
    """
    argv = [_bwrap(), "--unshare-all", "--die-with-parent", "--new-session", "--uid", "1000", "--gid", "1000"]
    argv += ["--cap-drop", "ALL", "--hostname", "sandbox"]
    if network:
        argv.append("--share-net")
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            argv += ["--ro-bind", str(path), str(path)]
    argv += ["--proc", "/proc", "--dev", "/dev", "--bind", str(folder), str(INSIDE)]
    argv += ["--bind", str(folder / "tmp"), "/tmp"]  # the sandbox's own
    if fixtures is not None:
        argv += ["--ro-bind", str(fixtures), str(FIXTURES_INSIDE)]
    return [*argv, "--remount-ro", "/", "--chdir", str(INSIDE / "work"), "--"]


@functools.cache
def complaint() -> str:
    """Why bubblewrap can't be used here, "" when a probe run succeeds."""
    if not shutil.which("bwrap", path=PATH):
        return "bubblewrap is not installed"
    probe = [_bwrap(), "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]
    try:
        done = subprocess.run(probe, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    reason = done.stderr.decode(errors="replace").strip().splitlines()
    return f"bubblewrap does not work: {reason[-1] if reason else done.returncode}" if done.returncode else ""


@functools.cache
def version() -> str:
    """As bubblewrap prints it."""
    return subprocess.run([_bwrap(), "--version"], capture_output=True, text=True, check=False).stdout.strip()


def _bwrap() -> str:
    return shutil.which("bwrap", path=PATH) or "bwrap"
