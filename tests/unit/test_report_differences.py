"""The changes that Results shows of two recordings, recomputed from the values that were written."""

from __future__ import annotations

import math
import re
from pathlib import Path
from random import Random
from statistics import fmean, median_low

from costmodel.statistics.intervals import Interval
from costmodel.statistics.verdict import Difference, Finding
from taxtui.report.cells import text_of
from taxtui.report.formats import BY_NAME, Report
from taxtui.report.measured.differences import change, pairs, sections
from taxtui.report.measured.rows import rows_of
from taxtui.report.measured.samples import read_samples
from taxtui.report.measured.tables import TABLES
from tests.support.costmodel_files import S, cell, trial, write

MS = S // 1000


def recording(tmp_path: Path, name: str, creates_ns: list[int], **identity: object) -> Path:
    trials = [trial(n, create=create, ready=S) for n, create in enumerate(creates_ns)]
    return write(tmp_path / f"{name}.msgpack", trials, cell(0, **identity), run_id=name)


def skewed(count: int, seed: int, scale: float = 1.0) -> list[int]:
    random = Random(seed)
    return [round(S * scale * random.lognormvariate(0, 0.3)) for _ in range(count)]


def against(before: Path, after: Path, *tables: str, form: str = "table") -> str:
    found = pairs(*(rows_of(read_samples([path])[0]) for path in (before, after)))
    shown = sections(found, tables or TABLES, before.name, after.name)
    return BY_NAME[form].render(Report(lambda: shown, list))


def test_a_change_is_the_difference_of_the_medians_and_of_the_means(tmp_path: Path) -> None:
    then, now = skewed(80, 1), skewed(90, 2, scale=3.0)
    text = against(recording(tmp_path, "then", then), recording(tmp_path, "now", now), "cold-start")
    assert re.search(r"\b80\b", text)
    assert re.search(r"\b90\b", text)
    of_medians, of_means = median_low(now) - median_low(then), fmean(now) - fmean(then)
    assert f"+{of_medians / S:.2f} s" in text
    assert f"+{of_means / S:.2f} s" in text
    assert "no difference" not in text.split("before:")[0]


def test_equal_recordings_tie(tmp_path: Path) -> None:
    values = skewed(40, 3)
    text = against(recording(tmp_path, "then", values), recording(tmp_path, "now", values), "completion")
    assert text.count(" no difference") >= 2


def test_the_interval_of_a_change_is_recovered_from_the_two(tmp_path: Path) -> None:
    paths = [recording(tmp_path, "then", skewed(100, 4)), recording(tmp_path, "now", skewed(100, 5))]
    before, after = (rows_of(read_samples([path])[0])[0].summary("cold_start") for path in paths)
    assert before
    assert after
    then, now = Interval(*before.p50[:3]), Interval(*after.p50[:3])  # type: ignore[arg-type]  # all three are known
    value = now.value - then.value
    limits = [(end, other) for end, other in ((now.low, then.high), (now.high, then.low)) if end and other]
    low, high = (
        value + math.copysign(math.hypot(end - now.value, other - then.value), end - now.value) for end, other in limits
    )
    expected = text_of(change(Difference(Interval(value, low, high), Finding("tie"))))
    text = against(*paths, "cold-start")
    assert expected.split(" ms")[0] in text


def test_a_substrate_meets_itself_before_any_other(tmp_path: Path) -> None:
    def rows(*labels: str) -> list[object]:
        found = []
        for label in labels:
            name = f"{label}-{len(list(tmp_path.iterdir()))}"
            found += rows_of(read_samples([recording(tmp_path, name, skewed(5, 6), substrate=label)])[0])
        return found

    def met(before: list[object], after: list[object]) -> list[tuple[str, str]]:
        found = pairs(before, after)  # type: ignore[arg-type]  # rows
        return [(pair.before.identity.label, pair.after.identity.label) for pair in found]

    assert met(rows("docker", "local"), rows("local", "docker")) == [("local", "local"), ("docker", "docker")]
    assert met(rows("docker"), rows("local")) == [("docker", "local")]
    assert met(rows("local"), rows("local", "docker")) == [("local", "local")]


def test_breakdown_and_tax_are_compared_too(tmp_path: Path) -> None:
    paths = [recording(tmp_path, "then", skewed(20, 7)), recording(tmp_path, "now", skewed(20, 8, scale=2))]
    text = against(*paths)
    for title in ("Breakdown of completion", "Tax: per successful trial", "Dispatch", "before: then.msgpack"):
        assert title in text
    assert against(*paths, form="markdown").count("\n### ") >= 5


def test_a_cell_without_a_success_has_no_change(tmp_path: Path) -> None:
    failed = [trial(n, outcome="failed") for n in range(5)]
    then = write(tmp_path / "then.msgpack", failed, cell(0), run_id="then")
    text = against(then, recording(tmp_path, "now", skewed(5, 9)))
    assert "a  no success: " in text
