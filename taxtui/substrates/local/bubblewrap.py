"""The bubblewrap command line: the visible files of a local sandbox, and the user.

A sandbox sees, read-only, the folders of the system's programs (``_SYSTEM``; PATH finds python3 and git there, never in
a home), a private ``/etc`` (:func:`furnish_etc`) and the fixtures; and three writable folders. Homes, /root, /var, /run
with sockets, temporary files of users and the host's processes are hidden.

A sandbox runs as nobody. An ordinary user's sandbox is the same user with another number, and may read the same files.
Root's sandbox could read everything, so ``setpriv`` inside really changes the user to nobody, without a user namespace.
Files for the user nobody, such as a fixtures folder, must then be readable for all users.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final

from taxtui.errors import ExecFailed
from taxtui.sandboxes.kit.refusal import last_line

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INSIDE: Final = Path("/sandbox")
"""The sandbox's own folders, as paths inside."""
FIXTURES_INSIDE: Final = Path("/fixtures")
ETC: Final = "etc"
"""The folder for the sandbox's /etc."""

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix")
_ETC_COPIED: Final = (
    *("host.conf", "hosts", "ld.so.cache", "localtime", "os-release", "protocols", "resolv.conf", "services"),
    *("pki/tls/cert.pem", "pki/tls/openssl.cnf", "ssl/cert.pem", "ssl/openssl.cnf", "timezone"),
)
_ETC_SHOWN: Final = ("alternatives", "crypto-policies", "pki/ca-trust/extracted", "pki/tls/certs", "ssl/certs")
_NOBODY: Final = 65534
_ETC_MADE: Final = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\nnobody:x:{_NOBODY}:{_NOBODY}:sandbox:{INSIDE}/home:/bin/sh\n",
    "group": f"root:x:0:\nnogroup:x:{_NOBODY}:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_BECOMING_NOBODY: Final = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")
"""Root's capabilities until the change of user; the last for entering a working folder of the user nobody."""
_PROBE_TIMEOUT_S: Final = 10.0
_LAUNCHERS: Final = (b"bwrap: ", b"setpriv: ")
_LAUNCHER_FAILED: Final = 1
"""The exit code of both, and possibly of a command: the first words on stderr decide."""


def wrap(folder: Path, fixtures: Path | None, *, network: bool) -> list[str]:
    """The arguments before a command in ``folder``, with ``work``, ``home``, ``tmp`` and ETC inside.

    Each is a mount: a sandbox could replace a subfolder by a link, and the next mount would follow the link out
    of the sandbox.
    """
    argv = [*_entered(network=network), "--hostname", "sandbox", *_system()]
    argv += ["--ro-bind", str(folder / ETC), "/etc"]
    for name in _shown_folders():
        argv += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    argv += ["--proc", "/proc", "--dev", "/dev", "--chmod", "1777", "/dev/shm"]
    argv += ["--perms", "0755", "--dir", str(INSIDE)]
    for name in ("work", "home"):
        argv += ["--bind", str(folder / name), str(INSIDE / name)]
    argv += ["--bind", str(folder / "tmp"), "/tmp"]
    if fixtures is not None:
        argv += ["--ro-bind", str(fixtures), str(FIXTURES_INSIDE)]
    return [*argv, "--remount-ro", "/", "--chdir", str(INSIDE / "work"), "--", *_as_nobody()]


def furnish_etc(folder: Path) -> None:
    """Make the /etc of a sandbox: two users, and a short list of the host's public files."""
    for name in _shown_folders():
        (folder / name).mkdir(parents=True)
    for name, content in _etc_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o644)  # with any umask: the sandbox's user reads it
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        path.chmod(0o755)


def hand_over(folder: Path) -> None:
    """Let the sandbox write to a folder."""
    if _root():
        os.chown(folder, _NOBODY, _NOBODY)


def not_started(exit_code: int, stderr: bytes) -> ExecFailed | None:
    """The error for a failed launcher, or None."""
    if exit_code != _LAUNCHER_FAILED or not stderr.startswith(_LAUNCHERS):
        return None
    return ExecFailed(stderr.decode(errors="replace").strip())


@functools.cache
def complaint() -> str:
    """The reason why bubblewrap does not work here, by a trial; "" without a problem."""
    if not shutil.which("bwrap", path=PATH):
        return "bubblewrap is not installed"
    if _root() and not shutil.which("setpriv", path=PATH):
        return "setpriv (util-linux) is not installed, and root's sandboxes require setpriv"
    # The probe mounts only a sandbox's own folders: a container's file system below / may vanish meanwhile.
    probe = [*_entered(network=False), *_system(), "--proc", "/proc", "--dev", "/dev", "--", *_as_nobody()]
    try:
        result = subprocess.run([*probe, "true"], capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    return f"bubblewrap does not work: {last_line(result.stderr) or result.returncode}" if result.returncode else ""


@functools.cache
def version() -> str:
    """The version printed by bubblewrap."""
    return subprocess.run([_bwrap(), "--version"], capture_output=True, text=True, check=False).stdout.strip()


def _entered(*, network: bool) -> list[str]:
    """Bubblewrap in new namespaces, with only the capabilities for becoming nobody."""
    argv = [_bwrap(), "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    argv += ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if not network:
        argv.append("--unshare-net")
    if not _root():
        return [*argv, "--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY)]
    for capability in _BECOMING_NOBODY:
        argv += ["--cap-add", capability]
    return argv


def _system() -> list[str]:
    """The folders of the system's programs, read-only."""
    argv = []
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            argv += ["--ro-bind", str(path), str(path)]
    return argv


def _as_nobody() -> list[str]:
    """The prefix of a command, to become the user nobody for good; empty if bubblewrap changes the user."""
    if not _root():
        return []
    setpriv = shutil.which("setpriv", path=PATH) or "setpriv"
    user = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    return [setpriv, *user, "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]


def _root() -> bool:
    return os.geteuid() == 0


@functools.cache
def _shown_folders() -> tuple[str, ...]:
    return tuple(name for name in _ETC_SHOWN if Path("/etc", name).is_dir())


@functools.cache
def _etc_files() -> dict[str, bytes]:
    copied = {}
    for name in _ETC_COPIED:
        path = Path("/etc", name)
        if path.is_file() and path.stat().st_mode & stat.S_IROTH:
            copied[name] = path.read_bytes()
    return copied | {name: content.encode() for name, content in _ETC_MADE.items()}


def _bwrap() -> str:
    return shutil.which("bwrap", path=PATH) or "bwrap"
