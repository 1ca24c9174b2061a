"""What containers without a daemon are made from: one folder, which all of them share and none can write to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec

from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.substrates.machine.options import MachineOptions
from taxtui.workloads import unpacked
from taxtui.workloads.image import DIGEST

OUR_FOLDER: Final = "/work"
"""The working folder in a root file system that names none: in memory, and writable by all."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NOBODY: Final = "65534:65534"
_USER: Final = re.compile(r"[0-9]{1,9}(:[0-9]{1,9})?")


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """A root file system and how it is used."""

    files: Path
    env: dict[str, str]
    uid: int
    gid: int
    folder: str  # the working one
    image: str = ""
    image_bytes: int = -1
    holds_fixtures: bool = False

    def has(self, program: str) -> bool:
        """Whether it is on the path inside. Blocking."""
        return any((self.files / folder.lstrip("/") / program).exists() for folder in self.env["PATH"].split(":"))


def find_root(substrate: str, options: MachineOptions) -> Root:
    """The root file system that the options name. Blocking.

    Raises:
        SubstrateUnavailable: there is none; the fix makes one.
    """
    try:
        folder = Path(options.root).expanduser().absolute() if options.root else unpacked.default_folder()
    except (UsageError, RuntimeError) as error:
        raise SubstrateUnavailable(f"{substrate}: {error}", fix="name a root file system with root=PATH") from error
    if options.user and not _USER.fullmatch(options.user):
        raise SubstrateUnavailable(f"{substrate}: user={options.user} is no UID or UID:GID", fix="write user=1000:1000")
    about = unpacked.about(folder)
    files = folder / unpacked.FILES if about else folder
    if not (files / "bin" / "sh").exists():
        what = f"{files} is no root file system" if options.root else "no image is unpacked"
        fix = "taxtui image build, then taxtui image unpack, as root; or root=PATH of one (debootstrap makes one)"
        raise SubstrateUnavailable(f"{substrate}: {what}", fix=fix)
    uid, _, gid = (options.user or (about.user if about else "") or (("0:0") if about else _NOBODY)).partition(":")
    own = about is None or not about.folder
    return Root(
        files=files,
        env={
            "PATH": PATH,
            "LANG": "C.UTF-8",
            "HOME": OUR_FOLDER,
            **(about.env if about else {}),
        },
        uid=int(uid),
        gid=int(gid or uid),
        folder=OUR_FOLDER if own or about is None else about.folder,
        image=about.image if about else "",
        image_bytes=about.image_bytes if about else -1,
        holds_fixtures=about is not None and about.fixtures == DIGEST,
    )
