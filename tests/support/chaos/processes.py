"""A case with real processes: a run of its own home, a strike, what is left, the next run, and a sweep."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import taxtui
from costmodel.recording.events import RunFinished, TrialStarted
from tests.support.chaos import places
from tests.support.chaos.cases import DOUBLED, HANG_S, HANGS, LEFT, UNDOCUMENTED, Case, Verdict, doubled, judged
from tests.support.chaos.strikes import KILLS, STRIKES, NotHere, Victim
from tests.support.command_line import PLAIN, Home, containers

CODES: Final = (0, 1, 2, 3, 4, 130)
"""That ``taxtui run`` documents."""
TRIALS: Final = 6
KILLED_TRIALS: Final = 24
"""Of a run that is to be killed before it has ended."""
DYING_S: Final = 20.0
"""How long what a watchdog has killed may take to be gone."""
EARLY: Final = 0.2
"""Of the strikes, from the start of the process on, and as many once the recording is there; then as trials begin."""
SPREAD_S: Final = 0.7
POLL_S: Final = 0.1
SCENARIO: Final = """
create_timeout = "5s"
timeout = "20s"
workers = {workers}
[[cells]]
substrates = ["{place}"]
tiers = ["{tier}"]
actions = [4]
modes = ["{mode}"]
concurrency = 3
trials = {trials}
warmup = {warmup}
"""
TIER: Final = """
name = "C"
title = "leaves processes behind"
requires = []
[[cycle]]
name = "one"
run = "sleep 0.05; (sleep 300 & setsid sleep 300 &) >/dev/null 2>&1 </dev/null; echo done"
expect_stdout = "done"
"""
OURS: Final = re.compile(rf'File "{re.escape(str(Path(taxtui.__file__).parent))}/')
"""A line of ours in a trace. A checkout may be called so too: Python's own lines in it are none."""
_SAID_MAX: Final = 700


def struck(case: Case) -> Verdict:
    """One case, from the start of its run until nothing of it is left, or what is."""
    if why := places.complaint(case.group):
        return Verdict(case, skipped=f"{case.group}: {why}")
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    home = Home(folder / "home", PYTHONWARNINGS="ignore")
    victim = Victim(home, home.cwd / "run.msgpack", case.source)
    try:
        with STRIKES[case.kind](victim) as blow:
            return _struck(case, victim, blow)
    except NotHere as reason:
        return Verdict(case, skipped=str(reason))
    finally:
        for pid in home.processes():
            victim.send(9, pid)
        home.close()
        shutil.rmtree(folder, ignore_errors=True)


def _struck(case: Case, victim: Victim, blow: Callable[[], None]) -> Verdict:
    source, home = victim.source, victim.home
    scenario = home.cwd / "scenario.toml"
    (home.cwd / "tier.toml").write_text(TIER)
    mode, warmup = source.choice(places.modes(case.group)), source.randint(0, 1)
    place, trials = places.named(case.group), KILLED_TRIALS if case.kind in KILLS else TRIALS
    workers = 2 if case.kind == "killed: worker" else 1
    given = {"place": place, "tier": "tier.toml", "mode": mode, "warmup": warmup, "trials": trials, "workers": workers}
    scenario.write_text(SCENARIO.format(**given))
    words = ("run", str(scenario), "--progress", victim.progress, "-o", str(victim.path), "--run-id", case.run_id)
    victim.process = home.start(*words, prefix=victim.prefix, **victim.streams)
    _await_moment(victim)
    in_time = victim.process.poll() is None
    amid = in_time and 0 < _started(victim.path) < trials
    blow()
    try:
        _, err = victim.process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        return Verdict(case, [(HANGS, f"its run does not end: {home.processes()}")], "hangs")
    said = (err or b"").decode(errors="replace")
    code = victim.process.returncode
    problems, events = judged(victim.path, tampered=victim.tampered)
    problems += exit_problems(code, said, victim)
    victim.mend()
    problems += _gone(case, victim)
    ended = [event.outcome for event in events if isinstance(event, RunFinished)]
    if ended == ["finished"]:
        problems += doubled(events, trials)
    if amid and case.kind in KILLS and not victim.struck:
        problems.append((UNDOCUMENTED, "the strike has hit no process"))
    if amid and case.kind == "killed: worker" and (code, ended) != (0, ["finished"]):
        problems.append((DOUBLED, f"a killed worker has ended its run: exit {code}, {ended}"))
    how = f"{'' if in_time else 'too late: '}exit {code}{', ' + ended[0] if ended else ''}"
    return Verdict(case, problems, how)


def _await_moment(victim: Victim) -> None:
    """Until the seed's moment has come, or the run has ended."""
    phase, wait_s = victim.source.random(), victim.source.uniform(0, SPREAD_S)
    begun = victim.source.randint(1, TRIALS - 1) if phase > 2 * EARLY else 0

    def there() -> bool:
        if phase < EARLY:
            return True
        if not victim.path.exists() or not victim.path.stat().st_size:
            return False
        return _started(victim.path) >= begun

    _waited(lambda: victim.process.poll() is not None or there(), HANG_S)
    time.sleep(wait_s)


def _started(path: Path) -> int:
    return sum(isinstance(event, TrialStarted) for event in judged(path)[1])


def _waited(holds: Callable[[], bool], limit_s: float) -> bool:
    """Whether it holds within so long; it is looked at once at least."""
    give_up = time.monotonic() + limit_s
    while not (held := holds()) and time.monotonic() < give_up:
        time.sleep(POLL_S)
    return held


def exit_problems(code: int, said: str, victim: Victim) -> list[tuple[str, str]]:
    """What is wrong with how a process ended and what it said on stderr."""
    problems = []
    if code not in CODES and -code not in victim.signals:
        problems.append((UNDOCUMENTED, f"exit {code}: {said[-_SAID_MAX:]}"))
    # Python itself may be struck before a line of ours runs, and then says so.
    if ("Traceback" in said or "Fatal Python error" in said) and OURS.search(said):
        problems.append((UNDOCUMENTED, said[-_SAID_MAX:]))
    return problems


def _gone(case: Case, victim: Victim) -> list[tuple[str, str]]:
    """Once the watchdogs have ended: what is left, after the next run has said so and a sweep.

    Behind a watchdog that was let alone that is nothing.
    """
    if not _waited(lambda: not victim.which("watchdog"), HANG_S):
        return [(HANGS, "its watchdog does not end")]
    guarded = case.kind in ("killed: runner", "killed: worker")
    if _waited(lambda: not _left(case, victim), DYING_S if guarded else 0.0):
        return []
    problems = [(LEFT, f"behind its watchdog: {_left(case, victim)}")] if guarded else []
    known = [name for name in victim.home.ledger() if name == f"{case.run_id}.json"]
    next_run = victim.home.cwd / "next.msgpack"
    short = ("-t", "T0", "-n", "1", "--trials", "1", "--warmup", "0", "--mode", "exec", "--progress", "none")
    done = _command(victim.home, "run", *PLAIN, *short, "-o", str(next_run))
    if not known:
        problems.append((LEFT, f"without an entry in the ledger: {_left(case, victim)}"))
    elif f"earlier runs left sandboxes: {case.run_id}" not in done:
        problems.append((LEFT, f"the next run does not say so: {done[-_SAID_MAX:]}"))
    swept = _command(victim.home, "clean", "--run", case.run_id, "--force", "-s", places.named(case.group))
    if left := _left(case, victim):
        problems.append((LEFT, f"after a sweep: {left}; it said: {swept[-_SAID_MAX:]}"))
    return problems


def _left(case: Case, victim: Victim) -> list[str]:
    home = victim.home
    there = [*home.processes().values(), *home.sandboxes(), *home.ledger(), *places.of_the_kernel(case.run_id)]
    there += places.on_the_host(case.run_id) if case.group == places.SSH else []
    return there + (containers(case.run_id) if case.group.startswith("docker") else [])


def _command(home: Home, *words: str) -> str:
    process = home.start(*words)
    with contextlib.suppress(subprocess.TimeoutExpired):
        out, err = process.communicate(timeout=HANG_S)
        return (out + err).decode(errors="replace")
    return "does not end"
