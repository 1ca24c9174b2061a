from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Hashable, Iterator
from pathlib import Path

import pytest
from textual import pilot
from textual._context import active_app
from textual._wait import wait_for_idle
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation

from taxtui import folders
from taxtui.plan import crowding
from taxtui.report import plan_time
from taxtui.sandboxes import registry
from taxtui.tui.setup.screen import SetupScreen
from tests.support import waiting
from tests.support.cost_model.simulating import simulate_once
from tests.taxtui.tui import story


async def idle(*args: float) -> None:
    """What Textual's pilot waits for behind each key, and until nothing in the event loop is ready to run.

    Textual takes an app for idle that is not let to run. Setup is filled in behind its first frame.
    """
    await wait_for_idle(*args)
    app = active_app.get()
    while app.is_running and isinstance(app.screen, SetupScreen) and not app.screen._whole.is_set():
        waiting.still("what follows the first frame of Setup")
        await asyncio.sleep(waiting.POLL_S)
    loop = asyncio.get_running_loop()
    while loop._ready:  # type: ignore[attr-defined]  # there is no public way to ask
        await asyncio.sleep(0)


_parsed: dict[Hashable, list[RuleSet]] = {}
_parse = Stylesheet._parse_rules


def parsed_once(
    sheet: Stylesheet, css: str, read_from: CSSLocation, is_default_rules: bool, tie_breaker: int, scope: str
) -> list[RuleSet]:
    """What Textual makes of one source of CSS, which it keeps per app: hundreds of apps here have the same sources."""
    key = (css, read_from, is_default_rules, tie_breaker, scope, frozenset(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse(sheet, css, read_from, is_default_rules, tie_breaker, scope)
    return _parsed[key]


RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign]  # its own is the same in Python: id(self)


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has the recordings of a fresh clone. The checkout can have recordings of its user's own too."""
    shipped = Path(__file__).parents[3] / "recordings"
    folder = tmp_path_factory.mktemp("clone")
    (folder / "recordings").mkdir()
    for name in re.findall(r"^\| `([a-z0-9]+\.msgpack)` ", (shipped / "README.md").read_text(), re.MULTILINE):
        (folder / "recordings" / name).symlink_to(shipped / name)
    return folder


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clone: Path) -> Iterator[None]:
    """Zone, colours, substrates and recordings are the test's, not the machine's."""
    monkeypatch.chdir(clone)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(pilot, "wait_for_idle", idle)
    monkeypatch.setattr(Stylesheet, "_parse_rules", parsed_once)
    monkeypatch.setattr(registry, "names", lambda: ["daytona", "docker", "ec2", "local"])
    monkeypatch.setattr(plan_time, "listing", lambda: ())
    monkeypatch.setattr(folders, "cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(crowding, "cores", lambda: 64)
    simulate_once(monkeypatch)
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return story.record(tmp_path / "story.msgpack")


@pytest.fixture
def shelf(folder: Path) -> Path:
    """Three recordings, a and b and c from the newest to the oldest."""
    for number, name in enumerate("cba"):
        run = story.run(4, finish=name != "b")
        run[1] = story.clock(unix_ns=story.UNIX_NS + number * 10**9)
        path = story.record(folder / f"{name}.msgpack", run)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder
