"""Levels of variation in the intervals, in one line."""

from __future__ import annotations

from collections.abc import Iterable

from costmodel import Basis


def in_words(bases: Iterable[Basis]) -> str:
    """Return ``95 % intervals: within and between repetitions (assumed: sd 7 %, …)``; each distinct basis once."""
    result = list(bases)
    grounds = []
    if measured := [basis for basis in result if basis.measured]:
        runs, sds = _span([basis.runs for basis in measured], ""), _span([100 * b.sd for b in measured], " %")
        grounds.append(f"measured over {runs} repetitions: sd {sds}")
    guesses = [basis for basis in result if not basis.measured]
    for sd, source in dict.fromkeys((basis.sd, basis.source) for basis in guesses):
        count = _span([basis.runs for basis in guesses if (basis.sd, basis.source) == (sd, source)], "")
        if source == "given":
            grounds.append(f"from run_sd: sd {100 * sd:g} %" if sd else "run_sd 0, so of these repetitions only")
        else:
            plural = "s" * (count != "1")
            grounds.append(f"assumed for {count} repetition{plural}: sd {100 * sd:g} %, {source}; run_sd changes it")
    return f"95 % intervals: within and between repetitions ({'; '.join(grounds)})." if grounds else ""


def _span(values: list[float], unit: str) -> str:
    texts = [f"{value:.0f}" if value >= 1 or value == 0 else f"{value:.1g}" for value in (min(values), max(values))]
    return f"{'–'.join(dict.fromkeys(texts))}{unit}"
