"""Images in which a harness's own server is installed, from what this environment has of it: nothing is fetched."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from taxtui.workloads.image import DEFAULT_IMAGE

_DOCKERFILE: Final = """FROM {base}
USER 0
COPY site /opt/harness
ENV PYTHONPATH=/opt/harness
COPY swerex-remote /usr/local/bin/
RUN chmod 755 /usr/local/bin/swerex-remote
USER 10001:10001
"""
_SERVER: Final = """#!/bin/sh
exec python3 -c 'from swerex.server import main; main()' "$@"
"""


def _needed(name: str) -> set[str]:
    """A distribution and all that it needs, as they are installed here."""
    seen, left = set[str](), [name]
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        for line in importlib.metadata.requires(each) or ():
            wanted, _, condition = line.partition(";")
            word = re.match(r"[A-Za-z0-9._-]+", wanted)
            assert word is not None
            if "extra" not in condition and _is_here(word[0]):
                left.append(word[0])
    return seen


def _is_here(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _copy(names: set[str], folder: Path) -> None:
    for name in names:
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(str(distribution.locate_file(file))), target)


def _says(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60).stdout.strip()


@functools.cache
def swerex_image() -> str:
    """The name of taxtui's own image with SWE-ReX in it, or why there is none, with a blank in front."""
    if not _says("docker", "image", "inspect", "--format", "{{.Id}}", DEFAULT_IMAGE):
        return " no image: taxtui setup"
    name = f"taxtui-test-swerex:{importlib.metadata.version('swe-rex')}-{DEFAULT_IMAGE.rpartition(':')[2]}"
    if _says("docker", "image", "inspect", "--format", "{{.Id}}", name):
        return name
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    theirs = _says("docker", "run", "--rm", "--network=none", DEFAULT_IMAGE, "python3", "-c", program)
    if ours != theirs:
        return f" Python {ours} here, {theirs or 'none'} in the image: what is installed here does not run there"
    with tempfile.TemporaryDirectory() as folder:
        _copy(_needed("swe-rex"), Path(folder) / "site")
        (Path(folder) / "swerex-remote").write_text(_SERVER)
        (Path(folder) / "Dockerfile").write_text(_DOCKERFILE.format(base=DEFAULT_IMAGE))
        argv = ["docker", "build", "--network=none", "--quiet", "--tag", name, folder]
        subprocess.run(argv, capture_output=True, check=True, timeout=300)
    return name
