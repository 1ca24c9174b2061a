"""Looking for local sandboxes while they come and go, and what their commands inherit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.protocol import Found
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate


async def test_a_folder_that_vanishes_while_it_is_looked_at_is_not_found(
    monkeypatch: pytest.MonkeyPatch, substrate: LocalSubstrate
) -> None:
    async with substrate:
        vanishing, staying = substrate.root / "taxtui-r-1", substrate.root / "taxtui-r-2"
        vanishing.mkdir()
        staying.mkdir()
        look = private_folder._sandbox_in

        def after_a_moment(folder: Path) -> Found | None:
            if folder == vanishing:
                folder.rmdir()
            return look(folder)

        monkeypatch.setattr(private_folder, "_sandbox_in", after_a_moment)
        assert [found.run_id for found in await substrate.find()] == ["r"]


def test_the_age_of_a_folder_without_a_record_is_that_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "taxtui-r-1"
    folder.mkdir()
    os.utime(folder, (time.time() - 100, time.time() - 100))
    [found] = private_folder.found_in(tmp_path, "r")
    assert 99 < found.age_s < 200


async def test_a_command_begins_with_the_signals_of_a_fresh_login() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = Process(["/bin/sh", "-c", "trap"], {}, stdin=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [each.length for each in await process.output()] == [0, 0]


HEIR = """
import asyncio, os, sys
from taxtui.sandboxes.kit.process import Process

async def main():
    descriptor = int(sys.argv[1])
    assert os.get_inheritable(descriptor) and os.pread(descriptor, 6, 0) == b"secret"
    process = Process(["/bin/cat", f"/dev/fd/{descriptor}"], dict(os.environ), stdin=False)
    out, err = await process.output()
    print(out.length, process.returncode)

asyncio.run(main())
"""


def test_a_command_inherits_no_descriptor_of_taxtui_s_caller(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with (tmp_path / "secret").open() as file:
        argv = [sys.executable, "-c", HEIR, str(file.fileno())]
        done = subprocess.run(argv, pass_fds=[file.fileno()], capture_output=True, text=True, check=True)
    length, code = map(int, done.stdout.split())
    assert length == 0
    assert code != 0


OTHER_RUN = b'{"labels": {"taxtui.run": "other"}, "created_unix_s": 9e99}'
FORGERIES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a link without an end": lambda meta: meta.symlink_to("/dev/zero"),
    "another run": lambda meta: meta.write_bytes(OTHER_RUN),
    "no labels": lambda meta: meta.write_bytes(b'{"labels": [], "created_unix_s": "x"}'),
    "no text": lambda meta: meta.write_bytes(b'{"labels": {"\xff": ""}}'),
}


@pytest.fixture
def substrate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LocalSubstrate:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return LocalSubstrate(LocalOptions(isolation="plain"))


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
async def test_a_forged_record_neither_hangs_nor_hides_a_sandbox(
    forge: Callable[[Path], object], substrate: LocalSubstrate
) -> None:
    async with substrate:
        folder = substrate.root / "taxtui-20260101t000000z-00000000-7"
        folder.mkdir()
        forge(folder / "meta.json")
        [found] = await substrate.find("20260101t000000z-00000000")
        assert found.age_s >= 0
        await substrate.reap(found)
        assert await substrate.find() == []


def nest(top: Path, levels: int) -> None:
    """Folders in folders, by descriptor: no path is as long."""
    folder = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


async def test_no_nesting_and_no_lock_keeps_a_sandbox_from_being_removed(
    substrate: LocalSubstrate, tmp_path: Path
) -> None:
    kept = tmp_path / "somebody else's"
    kept.mkdir()
    (kept / "file").touch()
    async with substrate:
        top = substrate.root / "taxtui-r-1"
        (top / "work" / "locked").mkdir(parents=True)
        (top / "work" / "file").touch()
        (top / "work" / "link").symlink_to(kept)
        (top / "work" / "locked" / "inner").mkdir()
        (top / "work" / "locked").chmod(0)
        await asyncio.to_thread(nest, top / "work", 3 * sys.getrecursionlimit())
        [found] = await substrate.find()
        await substrate.reap(found)
        assert not top.exists()
    assert (kept / "file").exists()


async def test_concurrent_clean_ups_of_a_sandbox_all_succeed(substrate: LocalSubstrate) -> None:
    async with substrate:
        top = substrate.root / "taxtui-r-1"
        for number in range(200):
            (top / "work" / str(number) / "deep").mkdir(parents=True)
            (top / "work" / str(number) / "file").touch()
        [found] = await substrate.find()
        await asyncio.gather(*(substrate.reap(found) for _ in range(4)))
        assert not top.exists()
