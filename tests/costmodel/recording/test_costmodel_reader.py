"""The cost model's own reader: what it makes of a file, and that no damage or payload changes a number silently.

Causes of held time add up to it, contention is told from work, and bad seconds are told by trial.
"""

from __future__ import annotations

import json
import struct
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import costmodel
from costmodel import Exposure, Recording, SourceError, TrainingRun, WorkerFitness, load, pools, project
from costmodel.recording import framing
from costmodel.recording.breakdown import UNKNOWN, Split, known_parts, measure, parted
from costmodel.recording.events import Health
from costmodel.recording.follower import read_events
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, frame, header, health, trial, write
from tests.support.fuzz import hostile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.msgpack"


def test_actions_may_arrive_in_parts_and_columns_of_zeros_empty(file: Path) -> None:
    events = trial(1, actions=())
    parts = [
        [6, 1, "action", 0, [], [], [S], [S], [], [], []],
        [6, 1, "action", 1, [5], [S], [S], [], [], [], []],
        [6, 1, "action", 2, [], [], [S], [UNKNOWN], [], [], []],
    ]
    events[-1][6] += 4 * S + 5
    events.insert(2, [4, 1, "started", events[1][3], 0])
    recording = load(write(file, [events[:4] + parts + events[4:]]))
    assert (recording.whole, recording.run_id) == (True, "run-1")
    (one,) = recording.cells[0].trials
    assert one.measures.orchestration_ns == 0
    assert list(one.durations_ns) == [S, S, S]
    assert list(one.gaps_ns) == [0, 5, 0]
    assert list(one.thinks_ns) == [0, S, 0]
    assert list(one.runs_ns) == [S, 0, UNKNOWN]


@pytest.mark.parametrize("run", [UNKNOWN, S + 1])
def test_a_run_that_is_unknown_or_longer_than_its_command_is_unknown(file: Path, run: int) -> None:
    (one,) = load(write(file, [trial(1, setup=[(S, run), (S, S)], runs=[run, S, 900 * S])])).cells[0].trials
    assert one.setup == Split(S, 0, S, divided=False), "of all commands of the setup together"
    assert not one.measures.divided
    assert list(one.runs_ns) == [UNKNOWN, S, UNKNOWN]


def test_what_does_not_count_is_left_out(file: Path) -> None:
    ended = [
        trial(n, outcome=outcome) for n, outcome in enumerate(("ok", "cancelled", "interrupted", "failed", "timeout"))
    ]
    running = trial(7)[:-1]  # when the writer died
    counted = load(write(file, [*ended, trial(6, warm_up=True), running])).cells[0].trials
    assert [one.ok for one in counted] == [True, False, False]


def test_trials_with_missing_actions_or_a_lost_start_are_dropped_and_counted(file: Path) -> None:
    gap = trial(1)
    gap[3][3] = 1  # the first row is lost
    recording = load(write(file, [gap, trial(3, actions=[S]), trial(4)]))
    assert (len(recording.cells[0].trials), recording.skipped) == (1, 2)
    recording = load(write(file, [trial(1)[1:], trial(2)]))
    assert (len(recording.cells[0].trials), recording.skipped) == (1, len(trial(1)[1:]))


@pytest.mark.parametrize("column", [4, 5, 7, 8, 9, 10, 11])
def test_columns_of_different_lengths_are_damage(file: Path, column: int) -> None:
    uneven = trial(2)
    [actions] = [event for event in uneven if event[0] == 6]
    actions += [[]] * (12 - len(actions))
    actions[column] = [S] * (len(actions[6]) + 1)
    with pytest.raises(SourceError, match="columns of different lengths"):
        load(write(file, [uneven]))


def test_a_busy_runner_is_noticed(file: Path) -> None:
    def problems(*seconds: list[Any]) -> list[str]:
        file.write_bytes(frame([header()]) + frame([cell(), *seconds]))
        return load(file).workers[0].problems

    assert not problems(*[health()] * 50)
    assert problems(*[health()] * 50, health(lag_p99=6_000_000)) == ["loop lag"]
    assert not problems(*[health()] * 200, health(lag_p99=6_000_000))
    assert problems(*[health(cpu_permille=900)] * 3) == ["client CPU"]


@pytest.mark.parametrize("length", [0, 4, 1 << 20 | 1, 1 << 31, 100_000])
def test_impossible_lengths_are_refused(file: Path, length: int) -> None:
    """Where intact frames follow, a wrong length is damage and no torn end."""
    first, torn, last = frame([header()]), bytearray(frame([cell()])), frame(trial(1))
    torn[1:5] = struct.pack(">I", length)
    file.write_bytes(first + bytes(torn) + last)
    with pytest.raises(SourceError, match=r"intact frames follow|not the start of a frame") as error:
        load(file)
    assert error.value.offset == len(first)


many = settings(max_examples=300, deadline=None)
times = st.integers(0, 10**13)
Command = tuple[int, int, int]  # duration, run and wrapper time
unsure = st.one_of(st.just(UNKNOWN), times)
commands = st.lists(
    st.one_of(
        st.tuples(times, unsure, unsure), st.tuples(times, times, times).map(lambda each: (sum(each), each[1], each[2]))
    ),
    max_size=30,
)
phases = st.dictionaries(st.sampled_from(["create", "reset", "ready", "ready_again", "preload", "setup"]), times)


def split(of: list[Command]) -> Split:
    durations = [duration for duration, *_ in of]
    return Split.of(durations, *known_parts(durations, [run for _, run, _ in of], [wrapper for *_, wrapper in of]))


def counted(command: Command) -> int:
    """The wrapper time of a command, 0 where it is unknown."""
    duration, run, wrapper = command
    return wrapper if 0 <= run <= duration and 0 <= wrapper <= duration - run else 0


@many
@given(phases, commands, commands, times, times, times, st.booleans(), st.none() | times, st.none() | st.floats(0, 1))
def test_the_causes_of_held_add_up_to_it(
    found: dict[str, int],
    setup: list[Command],
    actions: list[Command],
    queued: int,
    think: int,
    held: int,
    ok: bool,
    cpu: int | None,
    share: float | None,
) -> None:
    one = measure(found, split(setup), split(actions), held_ns=held, queued_ns=queued, think_ns=think, cpu_ns=cpu)
    parts = one.startup_ns + one.dispatch_ns + one.work_ns + one.unsplit_ns + one.wrapper_ns
    assert parts + one.harness_ns + queued + think == held
    assert one.trajectory_ns == held - queued - think
    assert one.fresh_episode_ns == one.startup_ns + found.get("setup", 0)
    useful = one.work_ns - one.contention_ns(share) + one.wrapper_ns
    assert one.tax_ns(ok=ok, contended=share) == held - (think + useful) * ok
    taken = sum(duration for duration, *_ in setup + actions)
    assert one.harness_ns == one.trajectory_ns - one.startup_ns - taken
    assert 0 <= one.contention_ns(share) <= one.work_ns
    assert (one.waiting_ns is None) == (cpu is None or not one.divided)
    assert not (one.divided and one.unsplit_ns)
    assert one.wrapper_ns == sum(map(counted, setup + actions))


@many
@given(commands, commands)
def test_commands_are_split_alike_at_once_in_parts_and_in_arrays(one: list[Command], other: list[Command]) -> None:
    whole = split(one + other)
    assert whole == split(one).plus(split(other))
    assert whole.taken_ns == sum(duration for duration, *_ in one + other)
    possible = [command for command in one + other if 0 <= command[1] <= command[0]]
    assert whole.divided == (len(possible) == len(one + other))
    assert whole.work_ns == sum(run for _, run, _ in possible)
    assert whole.wrapper_ns == sum(map(counted, possible))
    assert whole.dispatch_ns == sum(duration - run for duration, run, _ in possible) - whole.wrapper_ns
    durations = array("q", [duration for duration, *_ in one + other])
    runs, wrappers = (array("q", [command[place] for command in one + other]) for place in (1, 2))
    runs, wrappers = (array("q", column) for column in known_parts(durations, runs, wrappers))
    assert Split.of(durations, runs, wrappers) == whole
    assert [list(column) for column in parted(durations, runs, wrappers)] == [
        [run for _, run, _ in possible],
        [command[0] - command[1] - counted(command) for command in possible],
    ]


SLEEP = S // 2
"""That each action sleeps, alone or not: waiting, and no contention."""


def both_cells(folder: Path, *, alone: bool = True, cpus: bool = True) -> Path:
    """1 s of CPU time per action; side by side each action also waits 1 s for the other sandbox."""
    trials = []
    for number in range(8):
        crowd = number % 2
        run = S + SLEEP + crowd * S
        told = {"cpus": [S] * 3} if cpus else {}
        trials.append(trial(number, cell=crowd, actions=[run + S // 10] * 3, runs=[run] * 3, **told))
    cells = [cell(0, concurrency=1 if alone else 4), cell(1, concurrency=2, arrival="closed")]
    return write(folder / "a.msgpack", trials, *cells)


def reported(path: Path) -> list[dict[str, Any]]:
    return sorted(json.loads(printed("report", path, "--format", "json")), key=lambda row: int(row["concurrency"]))


def test_the_share_of_the_tax_does_not_fall_where_sandboxes_compete(tmp_path: Path) -> None:
    alone, crowd = reported(both_cells(tmp_path))
    assert (alone["work_per_success_ns"], crowd["work_per_success_ns"]) == (4.5 * S, 4.5 * S)
    assert (alone["tax_by_cause_ns"]["contention"], crowd["tax_by_cause_ns"]["contention"]) == (0, 3 * S)
    assert (alone["mean_ns"]["waiting"], crowd["mean_ns"]["waiting"]) == (1.5 * S, 4.5 * S)
    assert (crowd["mean_ns"]["work"], crowd["mean_ns"]["contention"]) == (4.5 * S, 3 * S)
    assert crowd["tax_share_of_held"] > alone["tax_share_of_held"]
    parts = crowd["tax_by_cause_ns"].values()
    assert sum(parts) == crowd["tax_per_success_ns"]["value"] == pytest.approx((3 + 0.3 + 3) * S)


def test_report_and_project_say_the_same_and_at_another_length_contention_keeps_its_share(tmp_path: Path) -> None:
    path, asked = both_cells(tmp_path), TrainingRun(trajectories=3600, workers=1)
    for row, told in zip(project([load(path)], asked, each_level=True), reported(path), strict=True):
        causes = row.by_cause_worker_hours
        assert causes.contention == pytest.approx(told["tax_by_cause_ns"]["contention"] / S)
        assert causes.work == pytest.approx(told["work_per_success_ns"] / S)
        assert row.tax_worker_hours.value == pytest.approx(told["tax_per_success_ns"]["value"] / S)
        assert sum(part or 0.0 for part in causes) == pytest.approx(row.worker_hours.value)
    causes = project([load(path)], replace(asked, actions=6), each_level=True)[1].by_cause_worker_hours
    assert (causes.contention, causes.work) == pytest.approx((6, 9))


@pytest.mark.parametrize(("alone", "cpus"), [(False, True), (True, False)])
def test_it_is_unknown_without_the_cell_alone_or_without_cpu_time(tmp_path: Path, alone: bool, cpus: bool) -> None:
    path = both_cells(tmp_path, alone=alone, cpus=cpus)
    rows = {row["concurrency"]: row for row in reported(path)}
    assert rows[2]["tax_by_cause_ns"]["contention"] is None
    assert rows[2]["work_per_success_ns"] == 7.5 * S
    assert "contention_unknown" in rows[2]["flags"]
    if not cpus:
        assert rows[1]["mean_ns"]["waiting"] is None
        assert "contention_unknown" not in rows[1]["flags"]


MS = S // 1000
BAD_NS = 6 * MS


def second(at_ns: int, lag_ns: int = 0, cpu_permille: int = 0) -> list[Any]:
    return [8, at_ns, 0, lag_ns, lag_ns, cpu_permille, 1, 0, 800_000]


def recorded(folder: Path, slow_ns: int, *, bad: int = 5, spread_ns: int = 0) -> Recording:
    """20 trials of 6 s, one each 1000 s; of ``bad`` of them a bad second, and an action that took longer."""
    trials = []
    for number in range(20):
        exposed = number < bad
        events = trial(number, actions=[S, S, S + exposed * slow_ns + number % 4 * spread_ns])
        start = number * 1000 * S
        seconds = [second(start), second(start + 2 * S, BAD_NS * exposed), second(start + 900 * S)]
        trials.append([*events[:-1], *seconds, events[-1]])
    return load(write(folder / "a.msgpack", trials, cell(0)))


def exposure(recording: Recording) -> Exposure | None:
    [pool] = pools([recording])
    return pool.exposure


def test_a_trial_is_exposed_for_its_share_of_the_bad_seconds() -> None:
    seconds = WorkerFitness()
    for at, lag_ns, cpu in ((10, 0, 0), (20, BAD_NS, 0), (30, 0, 0), (40, 0, 900), (50, BAD_NS, 900)):
        seconds.add(Health(at, 0, lag_ns, lag_ns, cpu, 0, 0, 0))
    shares = [seconds.share(*span) for span in ((0, 10), (10, 20), (15, 35), (0, 50), (20, 30), (45, 65), (60, 60))]
    assert shares == [0, 1, 0.5, 0.6, 0, 0.25, 0]


def test_a_bad_second_of_one_repetition_exposes_no_trial_of_another(tmp_path: Path) -> None:
    """Each worker's clock is its own: what happened at the same instants did not happen together."""
    frames: list[list[list[Any]]] = [[], [], [], []]
    for worker, lag_ns in enumerate((BAD_NS, 0)):
        clock = [1, worker, 0, 0, "h"]
        started, *rest = ([event[0], worker, *event[2:]] for event in trial(0, repetition=worker))
        frames[worker] = [clock, started]
        frames[2 + worker] = [clock, second(0), second(2 * S, lag_ns), *rest]
    recording = load(write(tmp_path / "a.msgpack", frames, cell(0)))
    first, other = recording.cells[0].trials
    assert (first.start_ns, first.end_ns) == (other.start_ns, other.end_ns)
    assert (first.exposed, other.exposed) == (1 / 3, 0)


def test_what_bad_seconds_do_is_told_with_and_without_their_trials(tmp_path: Path) -> None:
    found = exposure(recorded(tmp_path, 4 * S))
    assert (found.exposed, found.successes) == (5, 20)
    assert (found.every_ns.value, found.clean_ns.value, found.difference_ns) == (7 * S, 6 * S, S)
    assert exposure(recorded(tmp_path, S, bad=19)).exposed == 19
    assert exposure(recorded(tmp_path, S, bad=0)) is None


@pytest.mark.parametrize(("slow_ns", "spread_ns", "badged"), [(4 * S, 0, True), (S // 10, S, False), (0, 0, False)])
def test_a_row_is_badged_only_where_that_is_more_than_it_resolves(
    tmp_path: Path, slow_ns: int, spread_ns: int, badged: bool
) -> None:
    recording = recorded(tmp_path, slow_ns, spread_ns=spread_ns)
    (row,) = project([recording], TrainingRun(trajectories=100, workers=1))
    assert ("runner_distorted" in row.flags) == badged
    (told,) = json.loads(printed("report", tmp_path / "a.msgpack", "--format", "json"))
    assert ("runner_distorted" in told["flags"]) == badged
    assert told["bad_seconds"]["exposed_trials"] == 5
    assert "Trials in bad seconds" in printed("report", tmp_path / "a.msgpack", "--table", "breakdown")


def test_the_start_delay_is_shown_where_there_is_one(tmp_path: Path) -> None:
    trials = [trial(number) for number in range(1, 8)]
    for events in trials:
        events[0][4] = events[0][5] - 3 * S  # when it was scheduled
    late = write(tmp_path / "late.msgpack", trials)
    prompt = write(tmp_path / "prompt.msgpack", [trial(number) for number in range(1, 8)])
    shown = [printed("report", one, "--table", "breakdown") for one in (late, prompt)]
    assert "start delay" in shown[0]
    assert "3.00 s" in shown[0]
    assert "start delay" not in shown[1]


HEADER = msgspec.msgpack.encode([[0, "taxtui", 1, "r", {}, {}]])


def outcome(path: Path) -> tuple[int, int] | int:
    """Events and skipped ones; the offset where the file is refused."""
    try:
        summary = read_events(path, lambda event: None)
    except SourceError as error:
        assert "\n" not in str(error)
        return error.offset
    return summary.events, summary.skipped


@seed(18)
@settings(max_examples=300, deadline=None)
@given(hostile.recordings)
def test_any_bytes_are_read_or_refused_at_a_frame(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("r") / "r.msgpack"
    path.write_bytes(data)
    result = outcome(path)
    if isinstance(result, int):
        assert result in [0, *(offset for offset, _ in framing.FrameParser().feed(data))]


@pytest.mark.parametrize(
    "event",
    [
        b"\x94\x09\x01\xa4info\xa2\xff\xfe",  # a notice that is not UTF-8
        b"\x95\x09\x01\xa4info\xa1x" + b"\x91" * 5_000 + b"\x90",  # a field of tomorrow, nested without end
        b"\x92\x63\xa1\xff",  # an event of tomorrow that is not UTF-8
        msgspec.msgpack.encode([9, -1, "info", "x"]),
        msgspec.msgpack.encode([9, 2**63, "info", "x"]),
        msgspec.msgpack.encode([4, 1, "running", 1.5, 0]),
        msgspec.msgpack.encode([6, 1, "action", 0, [], [], [float("nan")], [0], [], [], []]),
        msgspec.msgpack.encode([6, 1, "action", 0, [], [], [5], [-2], [], [], []]),
        msgspec.msgpack.encode([7, 1, "ok", "", "", "", -5, 0, "warm"]),
        msgspec.msgpack.encode([4, 1, "running"]),
        msgspec.msgpack.encode([8, 0, 0, float("nan"), 0, 0, 0, 0, 0]),
        msgspec.msgpack.encode([10, "finished", {"ok": -1}]),
    ],
)
def test_an_event_that_cannot_be_is_damage_with_the_offset_of_its_frame(tmp_path: Path, event: bytes) -> None:
    path = tmp_path / "r.msgpack"
    path.write_bytes(hostile.sealed([HEADER, b"\x91" + event]))
    offset = len(framing.frame(HEADER))
    assert outcome(path) == offset
    with pytest.raises(SourceError, match=f"damaged at byte {offset}: "):
        costmodel.load(path)


def test_durations_that_add_up_to_more_than_a_recording_can_say_are_damage_in_the_cost_model(tmp_path: Path) -> None:
    batches = [msgspec.msgpack.decode(payload) for payload in hostile.payloads()]
    for event in (event for batch in batches for event in batch if event[0] == 6 and event[2] == "action"):
        event[4] = event[6] = [hostile.MAX_INT] * len(event[6])
    path = tmp_path / "r.msgpack"
    path.write_bytes(hostile.sealed([msgspec.msgpack.encode(batch) for batch in batches]))
    with pytest.raises(SourceError, match="damaged"):
        costmodel.load(path)
