"""Limits of local sandboxes: that they are in force, and which means is chosen where."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from taxtui.errors import CreateFailed, ExecFailed
from taxtui.plan.spec import Limits
from taxtui.sandboxes.kit import kill
from taxtui.sandboxes.kit import limits as local_limits
from taxtui.sandboxes.kit.limits import CgroupLimiter, Limiter, best_limiter
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.lifecycle import Usage
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local import substrate as local_substrate
from taxtui.substrates.local.substrate import LocalSubstrate
from tests.support.sandboxes import TIGHT, assert_limited, sandbox_of
from tests.support.waiting import cancelled, until

pytestmark = pytest.mark.processes

ISOLATION = [pytest.param("bwrap", marks=pytest.mark.bwrap), "plain"]
UNIFIED = Path("/sys/fs/cgroup/unified")


@pytest.fixture
async def _cgroups() -> None:
    if not isinstance(await best_limiter(), CgroupLimiter):
        pytest.skip("no cgroup may be made here")


@pytest.mark.usefixtures("_cgroups")
@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_limits_are_in_force_and_none_is_left_behind(isolation: Any, mode: str) -> None:
    substrate = LocalSubstrate(LocalOptions(isolation=isolation))
    async with sandbox_of(substrate, limits=TIGHT) as sandbox:
        groups = substrate.limiter.groups(sandbox.name)
        assert all(group.is_dir() for group in groups)
        await assert_limited(sandbox, mode)
    assert groups
    assert not any(group.exists() for group in groups)


def test_groups_of_killed_probes_are_removed_and_a_probe_in_progress_is_not(tmp_path: Path) -> None:
    killed, probing = (tmp_path / f"taxtui-probe-{pid}" for pid in (2**31 - 1, os.getpid()))
    killed.mkdir()
    probing.mkdir()
    files = ("cpu.max", "memory.max", "pids.max")
    local_limits._remove_old_probes(CgroupLimiter("cgroup v2", (tmp_path,), files))
    assert (killed.exists(), probing.exists()) == (False, True)


def test_version_2_takes_the_nearest_ancestor_with_all_controllers_and_writes_the_limits(tmp_path: Path) -> None:
    own = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / own.lstrip("/")).mkdir(parents=True, exist_ok=True)
    assert local_limits._version_2(tmp_path) is None
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory io\n")
    assert local_limits._version_2(tmp_path) is None
    for handed_down in ("cpu memory pids io\n", "pids memory cpu\n"):
        (tmp_path / "cgroup.subtree_control").write_text(handed_down)
        limiter = local_limits._version_2(tmp_path)
        assert limiter is not None
    values = {"cpu.max": "150000 100000", "memory.max": str(64 << 20), "pids.max": "7"}
    (tmp_path / "box").mkdir()
    for name in values:
        (tmp_path / "box" / name).touch()
    enter = limiter.prepare("box", Limits(cpus=1.5, memory_mib=64, pids=7))
    assert (limiter.label, enter) == ("cgroup v2", f"echo 0 >{tmp_path}/box/cgroup.procs && ")
    assert {name: (tmp_path / "box" / name).read_text() for name in values} == values


def test_a_parent_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    limiter = CgroupLimiter("cgroup v2", (tmp_path / "file",), ("cpu.max", "memory.max", "pids.max"))
    with pytest.raises(CreateFailed, match="cgroup v2 limits"):
        limiter.prepare("box", Limits())


async def test_nothing_usable(tmp_path: Path) -> None:
    limiter = await best_limiter(tmp_path)
    assert (limiter.label, limiter.prepare("box", Limits())) == ("none", "")


@pytest.mark.usefixtures("_cgroups")
async def test_a_trial_of_the_limits_leaves_no_group_even_if_cancelled() -> None:
    limiter = await best_limiter()
    groups = limiter.groups(f"taxtui-probe-{os.getpid()}")
    assert groups
    assert not any(group.exists() for group in groups)
    trial = asyncio.ensure_future(best_limiter())
    await asyncio.sleep(0)  # the trial waits for the process
    assert any(group.exists() for group in groups)
    await cancelled(trial)
    assert not any(group.exists() for group in groups)


@pytest.mark.parametrize("by_ps", [False, True])
async def test_marked_processes_are_killed_wherever_they_went(monkeypatch: pytest.MonkeyPatch, by_ps: bool) -> None:
    if by_ps:  # as on macOS, where there is no /proc
        monkeypatch.setattr(kill, "marked", kill._marked_by_ps)
    value = f"{os.getpid()}.{by_ps}"
    process = Process(["/bin/sh", "-c", "setsid sleep 300 & sleep 300"], {**os.environ, "MARK": value}, stdin=False)
    while len(kill.marked(f"MARK={value}".encode())) < 3:
        await asyncio.sleep(0.01)
    await asyncio.gather(kill.kill_marked(f"MARK={value}"), process.output())
    assert process.returncode == 137
    assert kill.marked(f"MARK={value}".encode()) == set()


@pytest.mark.skipif(not os.access(UNIFIED, os.W_OK), reason="no writable hierarchy of cgroup version 2")
async def test_the_freezer_of_cgroup_version_2_stops_and_continues_processes(tmp_path: Path) -> None:
    limiter = CgroupLimiter("cgroup v2", (UNIFIED,), ("cpu.max", "memory.max", "pids.max"))
    name, ticks = f"taxtui-test-{os.getpid()}", tmp_path / "ticks"
    enter = limiter.prepare(name, Limits())
    script = f"{enter}while :; do echo x >> {ticks}; sleep 0.02; done"
    process = Process(["/bin/sh", "-c", script], dict(os.environ), stdin=False)
    try:
        await until(ticks.exists, "the first tick")
        await limiter.freeze(name, frozen=True)
        stopped = ticks.stat().st_size
        assert limiter.usage(name).cpu_ns > 0
        await asyncio.sleep(0.3)
        assert ticks.stat().st_size == stopped
        await limiter.freeze(name, frozen=False)
        await until(lambda: ticks.stat().st_size > stopped, "a tick after the resume")
        await limiter.freeze(name, frozen=True)
    finally:
        await limiter.kill(name)  # of a frozen one
        await limiter.remove(name)
        await process.close()


async def test_without_cgroup_version_2_nothing_is_suspended(tmp_path: Path) -> None:
    for limiter in (Limiter(), CgroupLimiter("cgroup v1", (tmp_path,), ("cpu.cfs_quota_us", "memory", "pids"))):
        assert limiter.usage("box") == Usage()
        with pytest.raises(ExecFailed, match="cannot"):
            await limiter.freeze("box", frozen=True)


async def test_a_suspension_without_a_usable_cgroup_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local_substrate, "best_limiter", lambda: best_limiter(tmp_path))
    monkeypatch.setattr(
        LocalSubstrate, "capabilities", msgspec.structs.replace(LocalSubstrate.capabilities, lifecycle=("suspend",))
    )
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        assert substrate.capabilities.lifecycle == ()
