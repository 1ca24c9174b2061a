"""Percentiles of clustered samples, outliers and clusters, with figures worked out by hand."""

from __future__ import annotations

import math
from array import array

from costmodel.statistics.quantiles import effective_count
from costmodel.statistics.repetitions import RunKey
from taxtui.report.measured.samples import Column, summarize

STUDENT = {4: 2.776445, 19: 2.093024}
"""Two-sided 95 % quantiles by degrees of freedom, from printed tables."""


def test_the_worth_of_clusters_is_korn_and_graubards() -> None:
    trials = [[1, 1, 1, 9], [1, 1, 9, 9], [1, 1, 1, 1], [9, 9, 9, 1], [1, 1, 9, 9]]
    share = 12 / 20
    shares = [3 / 4, 2 / 4, 4 / 4, 1 / 4, 2 / 4]
    variance = sum((one - share) ** 2 for one in shares) / 4 / 5  # of the mean of five equal clusters
    worth = share * (1 - share) / variance * (STUDENT[19] / STUDENT[4]) ** 2
    assert effective_count(trials, 1) == math.floor(worth)
    assert effective_count(trials[:2], 1) == 2
    assert effective_count([[1, 2]] * 50, 1) == 100  # every cluster alike: no worse than independent values


def test_the_mean_of_durations_is_not_negative() -> None:
    column = Column()
    for value in (1, 1, 1000):
        column.add(array("q", [value]))
    summary = summarize(column, [(RunKey("a", 0), 0)] * 3)
    assert summary is not None
    assert summary.mean.value == 334
    assert summary.mean.low == 0
