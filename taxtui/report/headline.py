"""The headline of a ranking: the cheapest substrate, the ratio with its interval, and the main cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from costmodel import (
    CANNOT_TELL,
    TIE,
    Answer,
    Entry,
    Finding,
    Interval,
    ModeRatio,
    Place,
    Row,
    WorkLine,
    ranking,
    warnings,
)
from taxtui.report.numbers import number, plus_minus, span
from taxtui.report.words import CAUSES

UNKNOWN_MODE: Final = "unknown"
ALL: Final = 0.995
"""From this share on a cause is all of a difference."""
NEAR_ONE: Final = 1.1
"""Below this ratio the difference is printed as a percentage: 1.003 times is not read as a difference."""
APART: Final = "cannot be told apart"
DISTURBED: Final = "Disturbed: the measuring process was late or busy for most of the time"


class CauseExcess(NamedTuple):
    """Main cause of the difference between two entries."""

    cause: str  # a field of ``row.ByCause``
    share: float  # share of the difference; above 1 where further causes reduce the difference
    per_action_s: float  # the same, by trajectory and action; of set-ups too


def sentence(answer: Answer) -> str:
    """``docker exec takes 4.31 ± 0.26 times as long as local exec for T1 x 50; 41 ms of dispatch per action is …``.

    Also covers a tie, a single substrate, no common workload, no measurement, and a disturbed measurement. Texts from
    recordings are unescaped.
    """
    if (line := headline(answer)) is None:
        return _without_a_pair(answer)
    *middle, last = [entry for entry in line.ranked if entry.place != line.reference]
    reference = next(entry for entry in line.entries if entry.place == line.reference)
    way = _ground(answer)
    way += ", on another machine" * any(entry.another_environment for entry in (*middle, last))
    amounts = [entry.amount for entry in (*middle, last, reference)]
    way += ", at the highest concurrency that was measured" * any(amount and amount.at_least for amount in amounts)
    if middle:
        text = _several((*middle, last), reference, line, way, baseline=answer.baseline is not None)
    else:
        assert last.ratio is not None
        names = _named(last, line), _named(reference, line)
        text = _pair(names, last.ratio, last.verdict, f" for {_work(line)}{way}")
    cause = _why(last, reference, among_several=bool(middle))
    return f"{text}{cause}.{_otherwise(answer, line, last, reference)}{_left_out(answer)}"


def headline(answer: Answer) -> WorkLine | None:
    """Return the line of the headline; None where no two substrates have a common workload.

    The middle one among lines with most substrates and the first mode (exec before session), independent of its result.
    """
    shared = [line for line in answer.lines if len({entry.place for entry in line.ranked}) > 1]
    if not shared:
        return None
    widest = max(len(line.ranked) for line in shared)
    return middle_workload([line for line in shared if len(line.ranked) == widest])


def middle_workload(lines: Sequence[WorkLine]) -> WorkLine:
    """Return the middle line of the first mode; there is at least a line."""
    first = min(line.work.mode for line in lines)
    usual = [line for line in lines if line.work.mode == first]
    return usual[(len(usual) - 1) // 2]


def excess(dear: Row, cheap: Row) -> CauseExcess | None:
    """Return the main cause of the dearer row's excess; None where unknown for either row."""
    pair = [(row.by_cause_worker_hours, row.worker_hours, row.held_per_success_s) for row in (dear, cheap)]
    seconds: list[dict[str, float]] = []
    for causes, hours, held in pair:
        if causes is None or hours is None or held is None or not hours.value or causes.unsplit:
            return None
        if causes.work is None or causes.dispatch is None:
            return None
        scale = held.value / hours.value
        seconds.append({cause: (spent or 0.0) * scale for cause, spent in causes._asdict().items()})
    whole = sum(seconds[0].values()) - sum(seconds[1].values())
    if whole <= 0:
        return None
    cause = max(seconds[0], key=lambda name: seconds[0][name] - seconds[1][name])
    more_s = seconds[0][cause] - seconds[1][cause]
    return CauseExcess(cause, more_s / whole, more_s / (dear.length.actions or 1))


def _pair(names: tuple[str, str], ratio: Interval, verdict: Finding | None, work: str = "") -> str:
    """Compare two: ``docker exec takes 4.31 ± 0.26 times as long as local exec for T1 x 50``, or a tie."""
    if _is_open(verdict):
        limits = f" ({span(ratio)})" if ratio.limits else ""
        return f"{names[1]} and {names[0]} {APART}{work}: {number(ratio.value)} times{limits}"
    return _longer(*names, ratio, work)


def _several(entries: Sequence[Entry], reference: Entry, line: WorkLine, way: str, *, baseline: bool) -> str:
    """Compare a reference with several entries: ties first, then the ratios of the rest."""
    equal = [entry for entry in entries if _is_open(entry.verdict)]
    rest = [entry for entry in entries if entry not in equal]
    name, work = _named(reference, line), f"for {_work(line)}{way}"
    if equal:
        *names, final = [_named(entry, line) for entry in (reference, *equal)]
        lead = f"{', '.join(names)} and {final} {APART} {work}"
    else:
        lead = f"{name} is {'the baseline' if baseline else 'cheapest'} {work}"
        if all(entry.ratio and entry.ratio.value >= 1 and not entry.ratio.at_least for entry in rest):
            first, *more = [(entry.place.name, entry.ratio) for entry in rest if entry.ratio is not None]
            parts = [f"{first[0]} takes {_sure(first[1])} times as long"]
            parts += [f"{label} {_sure(ratio)}" for label, ratio in more]
            return f"{lead}: {', '.join(parts)}"
    parts = [_longer(_named(entry, line), name, entry.ratio) for entry in rest if entry.ratio is not None]
    return "; ".join([lead, *parts])


def _longer(name: str, reference_name: str, ratio: Interval, work: str = "") -> str:
    """``docker exec takes 4.31 ± 0.26 times as long as local exec``: the slower comes first."""
    if ratio.value < 1:
        low = None if not ratio.high else 1 / ratio.high
        ratio = Interval(1 / ratio.value, low, 1 / ratio.low if ratio.low and low else None)
        name, reference_name = reference_name, name
    if ratio.at_least:
        factor = f"at least {number(ratio.low or 0.0)} times as long as"
    elif ratio.value < NEAR_ONE:
        factor = f"{_sure(ratio.shifted(-1).times(100))} % longer than"
    else:
        factor = f"{_sure(ratio)} times as long as"
    return f"{name} takes {factor} {reference_name}{work}"


def _why(entry: Entry, reference: Entry, *, among_several: bool) -> str:
    """Name the main cause of the difference, where known."""
    if entry.verdict is None or _is_open(entry.verdict):
        return ""
    pair = entry.row, reference.row
    return _cause(*(pair if entry.ratio and entry.ratio.value >= 1 else pair[::-1]), among_several=among_several)


def _cause(dear: Row, cheap: Row, *, among_several: bool = False) -> str:
    """``; 41 ms of dispatch per action is 96 % of the difference``."""
    dearest = excess(dear, cheap)
    if dearest is None:
        return ""
    cause = CAUSES[dearest.cause]
    if dearest.cause == "dispatch":
        cause = f"{_short(dearest.per_action_s)} of dispatch per action"
    share = "all" if dearest.share >= ALL else f"{100 * dearest.share:.0f} %"
    which = f"the difference between {dear.label} and {cheap.label}" if among_several else "the difference"
    return f"; {cause} is {share} of {which}"


def _otherwise(answer: Answer, line: WorkLine, entry: Entry, reference: Entry) -> str:
    """Compare the two substrates in further modes, a sentence each."""
    parts = []
    for other_line in answer.lines:
        if other_line is line or other_line.work != line.work._replace(mode=other_line.work.mode):
            continue
        other_entry, other_reference = other_line.at(entry.place), other_line.at(reference.place)
        if other_entry is None or other_reference is None:
            continue
        if other_line.reference == other_entry.place:
            other_entry, other_reference = other_reference, other_entry
        if other_line.reference != other_reference.place or other_entry.ratio is None:
            continue
        names = other_entry.place.name, other_reference.place.name
        parts.append(f" By {other_line.work.mode}, {_pair(names, other_entry.ratio, other_entry.verdict)}.")
    return "".join(parts)


def _is_open(verdict: Finding | None) -> bool:
    return verdict is not None and verdict.kind in (TIE, CANNOT_TELL)


def _without_a_pair(answer: Answer) -> str:
    entries = [(line, entry) for line in answer.lines for entry in line.entries]
    amounts = [(line, entry) for line, entry in entries if entry.amount and entry.place.provenance == answer.ground]
    if not amounts:
        return "No trajectory succeeded, so there is nothing to compare."
    usable = [(line, entry) for line, entry in amounts if warnings.DISTURBED not in entry.row.flags]
    if not usable:
        rows = "the row is not" if len(amounts) == 1 else f"none of the {len(amounts)} rows is"
        return f"{DISTURBED}, so {rows} ranked. Measure again on an idle machine."
    places = [place for place in answer.places if any(entry.place == place for _, entry in usable)]
    if len(places) > 1:
        names = " and ".join([", ".join(place.name for place in places[:-1]), places[-1].name])
        text = f"{names} share no work: the same tier, length and mode at each would make them comparable."
    elif answer.modes:
        text = _mode(answer.modes[(len(answer.modes) - 1) // 2], _ground(answer))
    else:
        lines = [line for line in answer.lines if any(line is usable_line for usable_line, _ in usable)]
        text = _alone(middle_workload(lines), places[0], _ground(answer))
    return f"{text}{_left_out(answer)}"


def _mode(mode_ratio: ModeRatio, way: str) -> str:
    """Compare both modes of a substrate."""
    names = f"{mode_ratio.place.name} {ranking.EXEC}", f"{mode_ratio.place.name} {ranking.SESSION}"
    work = " x ".join(part for part in (mode_ratio.work.tier, str(mode_ratio.work.length)) if part)
    text = _pair(names, mode_ratio.ratio, mode_ratio.verdict, f" for {', '.join([work, *mode_ratio.differences])}{way}")
    if _is_open(mode_ratio.verdict):
        return f"{text}."
    pair = mode_ratio.row, mode_ratio.session
    return f"{text}{_cause(*(pair if mode_ratio.ratio.value >= 1 else pair[::-1]))}."


def _alone(line: WorkLine, place: Place, way: str) -> str:
    """Describe the only substrate."""
    entry = line.at(place)
    assert entry is not None
    assert entry.amount is not None
    held = entry.row.held_per_success_s  # for either measure, so that the sentence is the same
    takes = f"{number(entry.amount.value)} worker-hours" if held is None else f"{_short(held.value)} per trajectory"
    hours, tax = entry.row.worker_hours, entry.row.tax_worker_hours
    share = f", {100 * tax.value / hours.value:.0f} % of it tax" if tax and hours and hours.value else ""
    bound = "at least " if {warnings.HELD_UNTOLD, warnings.CREATE_UNTOLD} & set(entry.row.flags) else ""
    return (
        f"{_named(entry, line)} takes {bound}{takes} for {_work(line)}{way}{share}; there is nothing to compare "
        "it with: measure another substrate at the same work."
    )


def _left_out(answer: Answer) -> str:
    """Return the number of disturbed rows, because they have no rank."""
    rows = [entry.row for line in answer.lines for entry in line.entries]
    disturbed = sum(warnings.DISTURBED in row.flags for row in rows)
    return f" Disturbed and not ranked: {disturbed} of {len(rows)} rows." if disturbed else ""


def _ground(answer: Answer) -> str:
    """Return the provenance in parentheses, unless measured."""
    return "" if answer.ground == "measured" else f" (as {answer.ground.replace('_', '-')})"


def _work(line: WorkLine) -> str:
    """``T1 x 50``."""
    return ", ".join([" x ".join(part for part in (line.work.tier, str(line.work.length)) if part), *line.differences])


def _named(entry: Entry, line: WorkLine) -> str:
    """``docker exec``."""
    mode = "" if line.work.mode == UNKNOWN_MODE else line.work.mode
    return " ".join(part for part in (entry.place.name, mode) if part)


def _sure(ratio: Interval) -> str:
    """``4.31 ± 0.26``; both limits, ``3.8 (2.4–4.3)``, where the interval is lopsided."""
    return plus_minus(ratio).replace("±", "± ")


def _short(seconds: float) -> str:
    """``57 ms``."""
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if seconds >= s), (1e-9, "ns"))
    return f"{seconds / scale:.2g} {unit}" if seconds < 99.5 * scale else f"{seconds / scale:,.0f} {unit}"
