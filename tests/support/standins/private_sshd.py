"""A real sshd of a test's own: on a loopback address, with keys of its own, and a home that is nobody else's."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from taxtui.substrates.ssh import SshOptions
from tests.support.standins.standin_place import descendants
from tests.support.waiting import block_until

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin") or "sshd"


class PrivateSshd:
    """One sshd; its connections end with it, what they have started does not."""

    def __init__(
        self, folder: Path, address: str, port: int, host_key: str, authorized: Sequence[str], env: Mapping[str, str]
    ) -> None:
        """Write its files. ``env`` is set for everything that is started over it, besides a HOME of its own."""
        Path("/run/sshd").mkdir(exist_ok=True)
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "home").mkdir()
        self._write("host", host_key)
        self._write("authorized", "\n".join(authorized) + "\n")
        variables = {"HOME": str(folder / "home"), **env}
        settings = {
            "ListenAddress": f"{address}:{port}",
            "HostKey": folder / "host",
            "PidFile": folder / "pid",
            "AuthorizedKeysFile": folder / "authorized",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "MaxSessions": 64,
            "MaxStartups": 200,
            "UseDNS": "no",
            "SetEnv": " ".join(f"{key}={value}" for key, value in variables.items()),
        }
        self._write("config", "".join(f"{key} {value}\n" for key, value in settings.items()))

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)

    def start(self) -> None:
        """Returns at once; the port opens a little later."""
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen([SSHD, "-D", "-e", "-f", self.folder / "config"], stderr=log)

    def cut(self) -> None:
        """Kill its connections with all that runs in them; it still listens."""
        if self._process is not None:
            _kill(descendants(self._process.pid))

    def kill(self) -> None:
        if self._process is not None:
            _kill([self._process.pid, *descendants(self._process.pid)])  # connections before what runs in them
            self._process.wait()


class SshBox:
    """This machine as a host of sandboxes, reached by SSH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sandboxes = folder / "sandboxes"
        for name in ("host", "client"):
            new_key(folder / f"{name}.key")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        (folder / "sshd").mkdir()
        public = (folder / "client.key.pub").read_text().strip()
        host = (folder / "host.key").read_text()
        self.sshd = PrivateSshd(folder / "sshd", "127.0.0.1", self.port, host, [public], {})
        self.know(folder / "host.key.pub")
        self.start()

    def know(self, public: Path) -> None:
        """Write this one key to known_hosts, of any host on the port."""
        kind, key, *_ = public.read_text().split()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")

    def start(self) -> None:
        self.sshd.start()
        block_until(self._listens, "sshd listens")

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)) as opened:
            return bool(opened.recv(1))
        return False

    def options(self, **changed: Any) -> SshOptions:
        fields = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": "root",
            "key": str(self.folder / "client.key"),
            "known_hosts": str(self.folder / "known_hosts"),
            "folder": str(self.sandboxes),
        }
        return SshOptions(**{**fields, **changed})

    def named(self) -> str:
        options, usual = self.options(), SshOptions()
        told = {name: getattr(options, name) for name in options.__struct_fields__}
        return "ssh:" + ",".join(f"{key}={value}" for key, value in told.items() if value != getattr(usual, key))

    def left(self) -> list[str]:
        return sorted(path.name for path in self.sandboxes.glob("*"))


@contextlib.contextmanager
def ssh_box() -> Iterator[SshBox]:
    with tempfile.TemporaryDirectory(prefix="ssh-box-") as folder:
        box = SshBox(Path(folder))
        try:
            yield box
        finally:
            box.sshd.kill()


def new_key(path: Path, passphrase: str = "") -> Path:
    """A key in a file; the path of its public half."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", path], check=True)
    return path.with_name(f"{path.name}.pub")


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
