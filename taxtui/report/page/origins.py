"""Origin of a page's numbers: files with digests, software, and the commands that repeat the page."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from costmodel import Follower, Recording
from taxtui.terminal_text import clean, cut

MOST_COLUMNS = 120
DEFAULT_RUN = "--trajectories 1000000 --workers 500"


class Origin(NamedTuple):
    """One recording, without its folder."""

    name: str
    sha256: str
    run_id: str
    scenario: str
    seed: str
    trials: int
    whole: bool
    software: list[tuple[str, str]]


def origin_of(path: Path, source: Recording) -> Origin:
    """Return the origin of a recording."""
    with Follower(path) as follower:
        follower.poll(1)
        header = follower.header
    scenario: Mapping[str, Any] = header.scenario if header else {}
    software = sorted((header.software if header else {}).items())
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Origin(
        _short(path.name),
        digest,
        _short(source.run_id),
        _short(str(scenario.get("name", ""))),
        _short(str(scenario.get("seed", ""))),
        source.trials,
        source.whole,
        [(_short(name.replace("_", " ")), _short(version)) for name, version in software],
    )


def commands(origins: Sequence[Origin], options: Sequence[str] = (), command: str = "report") -> list[tuple[str, str]]:
    """Return commands for the folder of the recordings, each with its purpose.

    ``taxtui command`` with ``options`` made the page.
    """
    files = " ".join(shlex.quote(origin.name) for origin in origins)
    arguments = "".join(f" {shlex.quote(clean(option))}" for option in options)
    projects = f" {files}{arguments}" if command == "project" else f" {files} {DEFAULT_RUN}"
    texts = [
        (f"taxtui {command} {files}{arguments} --html page.html", "Make this page."),
        (f"taxtui recordings verify {files}", "Check every byte of the recordings."),
        (f"taxtui report {files} --format csv", "Print the numbers of the tables in nanoseconds."),
        (f"taxtui export {files} --format csv -o trials.csv", "Export every trial."),
        (f"taxtui project{projects} --explain", "Print the worker-hours with every formula."),
    ]
    names = dict.fromkeys(origin.scenario for origin in origins if origin.scenario)
    texts += [(f"taxtui run {shlex.quote(name)}", "Repeat the measurement.") for name in names]
    return texts


def _short(text: str) -> str:
    return cut(clean(text), MOST_COLUMNS)
