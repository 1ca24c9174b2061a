"""Earlier recordings whose durations are known to the nanosecond, and plans to be estimated from them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from costmodel.recording.events import Cell, Event
from taxtui import folders
from taxtui.live import catalogue
from taxtui.plan import scenario
from taxtui.plan.scenario import CellBlock, ScenarioFile
from taxtui.plan.spec import Plan
from taxtui.report import plan_time
from tests.taxtui.tui import story
from tests.taxtui.tui.story import MS, S, record

RUNC = story.cell(0, "docker", "runc")

TRIAL_NS = (40 + 20 + 2 + 10 * 5 + 10) * MS
"""Of ``story.trial`` as it is by default; ten actions of 5 ms each."""


def never() -> bool:
    return False


def told(cells: Sequence[Cell], trials: int = 3, **durations: Any) -> list[Event]:
    """A recording of these cells, every trial alike."""
    plans = [story.planned(cell.substrate, cell.tier, cell.actions, trials) for cell in cells]
    events: list[Event] = [story.header(plans), story.clock(), *cells]
    for number in range(trials * len(cells)):
        cell = number % len(cells)
        events += story.trial(
            number,
            cell,
            number * S,
            durations_ns=[5 * MS] * cells[cell].actions,
            warm_up=number < len(cells),
            **durations,
        )
    return events


def only_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This folder has the recordings, and nothing else has any."""
    monkeypatch.setattr(folders, "recordings", lambda: folder)
    monkeypatch.setattr(catalogue, "SHIPPED", ())
    monkeypatch.setattr(plan_time, "listing", lambda: catalogue.scan().entries)


def write(folder: Path, name: str, events: list[Event], age_s: int = 0) -> Path:
    """Record it, as last written to some time ago."""
    path = record(folder / f"{name}.msgpack", events)
    when = 1_700_000_000 - age_s
    os.utime(path, (when, when))
    return path


def started(events: list[Event], unix_s: int) -> list[Event]:
    """The same, but begun at another time."""
    return [events[0], story.clock(unix_ns=unix_s * S), *events[2:]]


def plan(*blocks: Mapping[str, Any], **more: Any) -> Plan:
    usual = {"substrates": ["docker"], "tiers": ["T0"], "actions": [10], "trials": 100, "warmup": 0}
    cells = [msgspec.convert({**usual, **block}, CellBlock) for block in blocks or [{}]]
    return scenario.plan(ScenarioFile(cells=cells, **more), Path())
