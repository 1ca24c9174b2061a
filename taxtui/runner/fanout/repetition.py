"""One repetition of a run, in a process of its own: ``python -m taxtui.runner.fanout.repetition``.

The first line of its standard input is an :class:`Assignment`, what follows are the orders of ``control``; the end of
the stream cancels it, so that it does not outlive whoever repeats. On standard output it says how far it is, and at
last how it has ended.
"""

from __future__ import annotations

from taxtui import starting

starting.quickly(__name__)

import asyncio
import contextlib
import os
import random
import signal
from fractions import Fraction
from pathlib import Path
from typing import Final

import msgspec

from costmodel.pricing import load_prices
from taxtui.errors import located
from taxtui.plan.spec import Plan
from taxtui.runner import control, interpreter
from taxtui.runner.fanout.declined import Declined
from taxtui.runner.fanout.measuring import run_of
from taxtui.runner.fanout.ray_engine import RayChoice
from taxtui.runner.progress import Progress
from taxtui.runner.redaction import scrub
from taxtui.runner.resuming import Repetition, Unfinished
from taxtui.runner.spend_limit import Used

PROGRESS_S: Final = 0.25


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What to do."""

    plan: Plan
    path: str
    run_id: str
    software: dict[str, str]
    prices: str | None  # a sheet
    repetition: int
    first_trial: int
    sandboxes: int  # used up by those before
    usd: str  # the same, as a fraction
    worker: int  # the first number of those that write it
    resumed: bool = False  # it has begun already, and was cut short
    ray: RayChoice | None = None  # whose nodes are to measure


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """How far it is."""

    progress: Progress


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """How it ended."""

    progress: Progress
    counts: dict[str, int]
    outcome: str
    crash: str  # "": none
    write_error: str
    cleanup_failed: bool
    clean: bool  # nothing is left of it; else its watchdog goes on looking
    out_of_time: bool
    unmeasured: list[str]
    first_trial: int  # of the next
    sandboxes: int
    usd: str
    worker: int


Told = Counted | Declined | Ended


def seed_of(seed: int, repetition: int) -> int:
    """The seed of a repetition: the plan's own for the first."""
    return seed if repetition == 0 else random.Random(f"{seed}:{repetition}").getrandbits(32)


def _tell(told: Told) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        os.write(1, msgspec.json.encode(told) + b"\n")


async def _main(task: Assignment) -> None:
    plan = msgspec.structs.replace(task.plan, seed=seed_of(task.plan.seed, task.repetition))
    part = Repetition(task.repetition, task.first_trial, Used(task.sandboxes, Fraction(task.usd)), task.worker)
    try:
        run = run_of(
            plan,
            Path(task.path),
            task.run_id,
            ray=task.ray,
            prices=None if task.prices is None else load_prices(task.prices),
            software=task.software,
            part=part,
            resumed=Unfinished(Path(task.path)) if task.resumed else None,
        )
    except Exception as error:
        _tell(Declined.of(error))
        return
    orders = {
        "pause": lambda: run.pause(True),
        "resume": lambda: run.pause(False),
        "stop": lambda: run.stop("interrupted"),
        "interrupt": lambda: run.abandon("interrupted"),
        "cancel": lambda: run.abandon("cancelled"),
    }
    control.obey(orders, orders["cancel"], lambda _: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, orders["interrupt"])

    async def keep_telling() -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            _tell(Counted(run.progress))

    telling = asyncio.ensure_future(keep_telling())
    try:
        await run.execute()
    except Exception as error:
        _tell(Declined.of(error))
        return
    finally:
        telling.cancel()
    after = run.going_on
    _tell(
        Ended(
            progress=run.progress,
            counts=run.counts,
            outcome=run.outcome,
            crash="" if run.crash is None else f"{located(run.crash)} {scrub(str(run.crash))}".rstrip(),
            write_error="" if run.write_error is None else str(run.write_error),
            cleanup_failed=run.cleanup_failed,
            clean=run.clean,
            out_of_time=run.out_of_time,
            unmeasured=run.unmeasured,
            first_trial=after.first_trial,
            sandboxes=after.used.sandboxes,
            usd=str(after.used.usd),
            worker=after.worker,
        )
    )


def _first_line() -> bytes:
    """Byte by byte: what follows belongs to whoever reads the orders."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line


if __name__ == "__main__":
    interpreter.settle()
    if first := _first_line():
        asyncio.run(_main(msgspec.json.decode(first, type=Assignment)))
