from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from taxtui.live.histogram import LogHistogram
from taxtui.tui.live.charts import EcdfPlot, steps
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, live
from tests.taxtui.tui.feeds import StoryRun, app


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_the_line_goes_from_none_to_all_of_the_values(values: list[int]) -> None:
    histogram = LogHistogram()
    histogram.add(values)
    across, up = steps(histogram)
    assert (up[0], up[-1]) == (0, 1)
    assert across == sorted(across)
    assert up == sorted(up)
    assert across[0] == max(1, min(values))
    assert across[-1] == max(1, max(values))


def three() -> StoryRun:
    names = ("local", "docker", "ec2")
    told = [story.header([story.planned(name, trials=4) for name in names]), story.clock()]
    for number in range(12):
        told += story.trial(number, number % 3, number * 10**9, create_ns=(1 + number % 3) * 40 * story.MS)
    return StoryRun(told)


async def test_all_substrates_are_on_one_chart_never_two_of_three_without_a_word() -> None:
    async with app(three()).run_test(size=(160, 50)) as pilot:
        await pilot.pause()
        plot = pilot.app.screen.query_one("#overlay", EcdfPlot)
        assert [line.label for line in plot.lines] == ["local", "docker", "ec2"]
        assert plot.display
        assert "of all 3" in str(plot.border_title)
        assert plot.size.width
        await pilot.resize_terminal(*SIZE)
        await pilot.pause()
        assert not plot.size.width
        assert "1 of 3, v all" in str(pilot.app.screen.query_one("#chart").border_title)
        await pilot.press("v")
        await pilot.pause()
        assert plot.size.width
        assert not pilot.app.screen.query_one("#chart").size.width


async def test_one_substrate_alone_has_its_next_duration_beside_it() -> None:
    told = [story.header([story.planned("local", trials=4)]), story.clock(), *story.trial(0, 0, 10**9)]
    async with app(StoryRun(told)).run_test(size=(160, 50)) as pilot:
        await pilot.pause()
        assert not live(pilot).has_class("-several")
        assert "fresh episode · local" in str(pilot.app.screen.query_one("#other").border_title)
