"""What a kernel's last words amount to, and when its registers are too few."""

from __future__ import annotations

import pytest

from taxtui.sandboxes.protocol import Availability
from taxtui.substrates.machine.containers import MachineSubstrate
from taxtui.substrates.machine.uml.boot import ended, too_many_registers, without_wide_registers
from taxtui.substrates.machine.uml.failure import GARBAGE, no_network, not_started, silent
from taxtui.substrates.machine.uml.substrate import UmlSubstrate


def test_a_panic_is_told_with_what_was_said_before_it() -> None:
    said = (
        b"Checking that ptrace can change system call numbers...OK\n"
        b"userspace - ptrace set fp regs failed, errno = 14\n"
        b"Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n"
        b"CPU: 0 PID: 1 Comm: sh Not tainted 6.1.176 #1 \n"
    )
    told = str(not_started(said))
    assert "ptrace set fp regs failed" in told
    assert "Attempted to kill init! exitcode=0x0000000b" in told
    assert "\n" not in told


def test_without_a_panic_its_last_words_count_and_noise_does_not() -> None:
    assert "bwrap: no such file" in str(not_started(b"SELinux: noise\nbwrap: no such file\nChecking environment\n"))
    assert "it said nothing" in str(not_started(b""))
    assert "within 5 s" in str(silent(5))
    assert "no network" in str(no_network())


def test_only_processors_with_tiles_need_the_filter() -> None:
    assert too_many_registers("flags\t: fpu avx512f amx_tile amx_int8\n")
    assert not too_many_registers("flags\t: fpu avx512f\n")
    assert len(without_wide_registers()) == 10 * 8


def test_the_end_of_a_request_is_told_by_its_mark() -> None:
    assert ended("ab") == b"\nTAXTUI-ENDED-ab\n"


async def test_check_says_where_results_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ready(self: MachineSubstrate) -> Availability:
        return Availability(ok=True, detail="ready, 6.1")

    monkeypatch.setattr(MachineSubstrate, "check", ready)
    substrate = UmlSubstrate()
    assert (await substrate.check()).detail == "ready, 6.1"
    substrate._narrow = True
    assert (await substrate.check()).detail == f"ready, 6.1; {GARBAGE}"
