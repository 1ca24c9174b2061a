"""Sandboxes as folders on another host, by SSH. This file has their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from taxtui.errors import SubstrateUnavailable
from taxtui.substrates.ssh.scripts import FOLDER


class SshOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``-s ssh:host=box,user=agent,key=~/.ssh/id_ed25519``. Options left out are as in ``~/.ssh/config``."""

    host: str = ""  # required: a name, an address, or a Host of ~/.ssh/config
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    user: str = ""
    key: str = ""  # a file; else the agent's keys and the usual files
    known_hosts: str = ""  # a file; else ~/.ssh/known_hosts
    folder: str = ""  # on the host, private: the sandboxes' folder; else /tmp/taxtui-ssh-UID
    fixtures: str = ""  # on the host, for T1 and T2: the fixtures of `taxtui setup`

    def login(self) -> dict[str, Any]:
        """The keywords of ``asyncssh.connect``. Raises ``SubstrateUnavailable`` for unusable options."""
        if not self.host:
            raise SubstrateUnavailable("ssh: option host is missing", fix="-s ssh:host=NAME")
        for name, path in (("folder", self.folder), ("fixtures", self.fixtures)):
            if path and not FOLDER.fullmatch(path):
                fix = "write an absolute path of letters, digits, dots, - and _"
                raise SubstrateUnavailable(f"ssh: {name}={path} cannot be used", fix=fix)
        settings: dict[str, Any] = {"port": self.port, "username": self.user}
        for name, path in (("client_keys", self.key), ("known_hosts", self.known_hosts)):
            settings[name] = str(Path(path).expanduser()) if path else ""
        return {name: value for name, value in settings.items() if value}
