"""Looking for local sandboxes while they come and go, and what their commands inherit."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import pytest

from taxtui.sandboxes.kit.process import Process
from taxtui.substrates.local import substrate as local
from taxtui.substrates.local.options import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate


async def test_nothing_is_found_where_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        substrate.root.rmdir()
        assert await substrate.find() == []


async def test_a_folder_that_vanishes_while_it_is_looked_at_is_not_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        vanishing, staying = substrate.root / "taxtui-r-1", substrate.root / "taxtui-r-2"
        vanishing.mkdir()
        staying.mkdir()
        look = local._found

        def after_a_moment(folder: Path) -> local.Found | None:
            if folder == vanishing:
                folder.rmdir()
            return look(folder)

        monkeypatch.setattr(local, "_found", after_a_moment)
        assert [found.run_id for found in await substrate.find()] == ["r"]


async def test_a_command_begins_with_the_signals_of_a_fresh_login() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = Process(["/bin/sh", "-c", "trap"], {}, stdin=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [each.length for each in await process.output()] == [0, 0]
