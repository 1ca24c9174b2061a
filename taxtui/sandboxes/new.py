"""The files of ``taxtui setup --new NAME``: the example substrate, under another name."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path
from typing import Final

from taxtui.errors import UsageError
from taxtui.sandboxes import registry

_EXAMPLE: Final = "example.py"
_PROJECT: Final = """[project]
name = "taxtui-{name}"
version = "0.1.0"
dependencies = ["taxtui"]

[project.entry-points."taxtui.substrates"]
{name} = "{name}:{kind}"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
include = ["{name}.py"]
"""


def write(name: str, folder: Path) -> list[Path]:
    """Write ``NAME.py`` and ``pyproject.toml`` into ``folder``; return their paths.

    Raises:
        UsageError: the name cannot name a substrate, or a file exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        fix = "use lower-case letters, digits and _"
        raise UsageError(f"{name!r} cannot be the name of a substrate", fix=fix)
    if name in registry.names():
        raise UsageError(f"there is a substrate {name!r} already", fix="choose another name")
    kind = "".join(part.capitalize() for part in name.split("_"))
    source = (resources.files("taxtui.sandboxes") / _EXAMPLE).read_text(encoding="utf-8")
    texts = {
        folder / f"{name}.py": re.sub(r"\bexample\b", name, source).replace("Example", kind),
        folder / "pyproject.toml": _PROJECT.format(name=name, kind=kind),
    }
    for path in texts:
        if path.exists():
            raise UsageError(f"{path.name} exists already", fix="go to an empty folder, or remove it")
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return list(texts)
