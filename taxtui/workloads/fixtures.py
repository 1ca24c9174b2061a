"""The offline fixtures of T1 and T2, built once into the user's cache directory.

::

    <cache>/taxtui/fixtures-<digest>/
      attrs.git/                  bare, one new commit with the tree of upstream's tag 25.4.0
      wheels/                     T2's packages, and requirements.txt with hashes
      nested-disabled-*.patch     a failing test of a bug in the release, and the fix
      gitconfig                   for clones from attrs.git
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from taxtui import folders
from taxtui.errors import TaxtuiError
from taxtui.plan.spec import Plan
from taxtui.workloads.programs import run_program

TREE: Final = "1a89cec703f192afebbdf353d04f13de00952d2b"
"""The tree of python-attrs/attrs at tag 25.4.0, here and upstream."""

COMMIT: Final = "ee1e91d6d9308b1fe4aa867109931c8cf4c5d517"
"""The one commit with the tree; the same on every machine."""

DATA: Final = Path(__file__).parent / "data"


def _digest() -> str:
    parts = [
        COMMIT.encode(),
        *(part for path in sorted(DATA.glob("[!.]*")) for part in (path.name.encode(), path.read_bytes())),
    ]
    return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()[:12]


DIGEST: Final = _digest()
"""12 hex digits over all sources of the fixtures."""


def wanted_here(plan: Plan) -> bool:
    """Whether local sandboxes use this machine's fixtures, not another folder."""
    return any(
        cell.substrate.name == "local" and cell.tier.uses_fixtures and "fixtures" not in cell.substrate.options
        for cell in plan.cells
    )


def ensure(progress: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of fixtures; build a missing folder first.

    Raises:
        TaxtuiError: git or pip is missing, the package index cannot be reached, or the cache cannot be written.
    """
    if folder := cached():
        return folder
    final = _folder()
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=final.parent) as scratch:
            downloads, built = Path(scratch, "downloads"), Path(scratch, "fixtures")
            progress("fetching attrs 25.4.0 and wheels for the tests (3 MB) with pip")
            _download(downloads)
            progress("building the repository")
            _assemble(downloads, built)
            _publish(built, final)
    except OSError as error:
        raise TaxtuiError(f"cannot build the fixtures in {final.parent}: {error.strerror or error}") from error
    return final


def cached() -> Path | None:
    """Return the folder of fixtures if it has been built, else None."""
    return folder if (folder := _folder()).is_dir() else None


def _folder() -> Path:
    return folders.cache() / f"fixtures-{DIGEST}"


def _download(into: Path) -> None:
    """Fetch the source distribution and the wheels for every Python from the user's package index."""
    into.mkdir()
    pins = (DATA / "attrs.txt").read_text() + (DATA / "requirements.txt").read_text()
    lock = into / "lock.txt"
    lock.write_text(re.sub(r" ; .*?(?= --hash)", "", pins))
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--no-binary=attrs"]
    _run([*pip, *options, f"--dest={into}", f"--requirement={lock}"], "pip cannot fetch the fixtures")


def _assemble(downloads: Path, built: Path) -> None:
    wheels = built / "wheels"
    wheels.mkdir(parents=True)
    for wheel in downloads.glob("*.whl"):
        shutil.copyfile(wheel, wheels / wheel.name)
    shutil.copyfile(DATA / "requirements.txt", wheels / "requirements.txt")
    for path in [DATA / "gitconfig", *DATA.glob("*.patch")]:
        shutil.copyfile(path, built / path.name)
    (sdist,) = downloads.glob("attrs-*.tar.gz")
    _repository(sdist, built / "attrs.git")
    for path in [built, *built.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # also with a strict umask: sandboxes have other users


def _repository(sdist: Path, bare: Path) -> None:
    """A bare repository from the source distribution's files, byte for byte: nothing is checked out or converted."""
    git = ["git", f"--git-dir={bare}"]
    _run([*git, "init", "--quiet", "--bare", "--template=", "--initial-branch=main"], "git cannot make the repository")
    with tarfile.open(sdist) as archive:
        stream = b"".join(_fast_import(archive))
    _run([*git, "fast-import", "--quiet", "--done"], "git cannot import attrs", stream)
    _run([*git, "repack", "-adfq"], "git cannot pack the repository")
    _run([*git, "pack-refs", "--all"], "git cannot pack the repository")
    commit, tree = _run([*git, "rev-parse", "25.4.0", "25.4.0^{tree}"], "git cannot read the repository").split()
    if (commit, tree) != (COMMIT, TREE):
        raise TaxtuiError(
            f"the fixtures' commit is {commit} with tree {tree}, not {COMMIT} with {TREE}", fix="report this"
        )


def _fast_import(archive: tarfile.TarFile) -> Iterable[bytes]:
    """Yield the commands of ``git fast-import`` for one commit, equal in every byte on every machine."""
    message = b"attrs 25.4.0, as in its source distribution\n"
    yield b"commit refs/heads/main\nmark :1\ncommitter taxtui <taxtui@localhost> 1759708800 +0000\n"
    yield b"data %d\n%s" % (len(message), message)
    for member in archive:
        path = member.name.partition("/")[2]
        content = archive.extractfile(member)
        if content is None or path == "PKG-INFO":  # a folder; and the one file missing upstream
            continue
        body = content.read()
        yield b"M %s inline %s\ndata %d\n%s\n" % (
            b"100755" if member.mode & 0o100 else b"100644",
            path.encode(),
            len(body),
            body,
        )
    yield b"reset refs/tags/25.4.0\nfrom :1\n\ndone\n"


def _publish(built: Path, final: Path) -> None:
    """Rename ``built`` to ``final``; of several builders the first wins."""
    try:
        built.rename(final)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _run(command: list[str], failure: str, stdin: bytes = b"") -> str:
    """Run a program without the user's git settings."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    return run_program(command, failure, env=env, stdin=stdin).decode()
