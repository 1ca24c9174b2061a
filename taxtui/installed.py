"""Packages of this Python environment: entry points of all packages, and the extras of taxtui."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_REQUIREMENT = re.compile(r"""([\w.-]+).*;.*extra\s*==\s*['"]([\w-]+)['"]""")


def points(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name. They are read once, because that takes ten milliseconds."""
    return _points(group, tuple(sys.path))


def point(group: str, name: str) -> EntryPoint | None:
    """Return the entry point of a name, or None."""
    return points(group).get(name)


@lru_cache(maxsize=16)
def _points(group: str, folders: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def missing_packages(extra: str | None) -> list[str]:
    """Return the missing packages of an extra of taxtui."""
    return [package for package in _packages_by_extra().get(extra or "", ()) if not is_installed(package)]


def is_installed(package: str) -> bool:
    """Whether this environment has a package."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def extra_command(extra: str, python: str = "") -> str:
    """Return the shell command that adds an extra to this installation, with the installer of this installation.

    The command works from any folder. pipx and uv replace the requirements of a tool, so their commands repeat the
    installed extras.

    Args:
        extra: name of the extra.
        python: version such as ``3.12``, if the extra needs a newer Python.
    """
    prefix = Path(sys.prefix)
    for receipt, tool, version_of in (("uv-receipt.toml", "uv tool", ""), ("pipx_metadata.json", "pipx", "python")):
        if (prefix / receipt).is_file():
            option = f" --python {version_of}{python}" if python else ""
            return f"{tool} install --force{option} {_requirement([*_installed_extras(), extra])}"
    if python:
        return f"python{python} -m venv .venv-{python} && .venv-{python}/bin/pip install {_requirement([extra])}"
    program = shlex.quote(sys.executable)
    pip = f"{program} -m pip install" if find_spec("pip") else f"uv pip install --python {program}"
    return f"{pip} {_requirement([extra])}"


def _requirement(extras: list[str]) -> str:
    """Return the source of this installation with extras, as one or two words of a shell."""
    names = ",".join(dict.fromkeys(extras))
    origin = _direct_url()
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return editable + shlex.quote(f"{unquote(urlsplit(url).path)}[{names}]")
    if repository := origin.get("vcs_info"):
        revision = repository.get("requested_revision") or repository["commit_id"]
        url = f"{repository['vcs']}+{url}@{revision}"
    return shlex.quote(f"taxtui[{names}] @ {url}" if url else f"taxtui[{names}]")


def _direct_url() -> dict[str, Any]:
    """Return PEP 610's record of the source; {} for a package from an index."""
    import json  # not imported before a hint is needed

    try:
        text = distribution("taxtui").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    origin: dict[str, Any] = json.loads(text or "{}")
    return origin


def _installed_extras() -> list[str]:
    return [extra for extra in _packages_by_extra() if extra != "all" and not missing_packages(extra)]


def _packages_by_extra() -> dict[str, list[str]]:
    packages: dict[str, list[str]] = {}
    for match in filter(None, map(_REQUIREMENT.match, requires("taxtui") or ())):
        packages.setdefault(match[2], []).append(match[1])
    return packages
