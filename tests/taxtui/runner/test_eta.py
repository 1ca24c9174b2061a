"""The remaining time of a run, by its pace so far."""

from __future__ import annotations

import pytest

from taxtui.runner.progress import Progress


@pytest.mark.parametrize(
    ("planned", "ended", "in_flight", "before", "left_s"),
    [
        (10, 4, 0, 0, 15.0),
        (10, 10, 0, 0, 0.0),
        (6, 1, 5, 0, 10 * 2.5 / 3.5),  # all started together: the others are nearly done
        (10, 6, 0, 5, 40.0),  # a resumption: the pace is that of this part
        (10, 0, 4, 0, None),
        (10, 5, 0, 5, None),
    ],
)
def test_the_pace_so_far_gives_the_remaining_time(
    planned: int, ended: int, in_flight: int, before: int, left_s: float | None
) -> None:
    progress = Progress(planned=planned, ended=ended, in_flight=in_flight)
    progress.estimate(10.0, before)
    assert progress.left_s == (None if left_s is None else pytest.approx(left_s))
