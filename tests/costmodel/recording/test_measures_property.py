"""The causes of held add up to it to the nanosecond, and the badge does not depend on how it is computed."""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.recording.breakdown import UNKNOWN, Split, known_parts, measure, parted

many = settings(max_examples=300, deadline=None)
times = st.integers(0, 10**13)
Command = tuple[int, int, int]  # duration, run and wrapper time
unsure = st.one_of(st.just(UNKNOWN), times)
commands = st.lists(
    st.one_of(
        st.tuples(times, unsure, unsure),
        st.tuples(times, times, times).map(lambda each: (sum(each), each[1], each[2])),
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
