"""A wait that the poller took for all sandboxes at once is said, once."""

from __future__ import annotations

import asyncio

import pytest

from costmodel.recording.events import Notice
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support.standins import ecs_standin_setup
from tests.support.standins.ecs_standin_setup import CREDENTIALS, spec
from tests.taxtui.runner.test_trial import FakeContext, trial_of

pytestmark = pytest.mark.processes


async def test_a_throttle_that_the_poller_waits_out_is_one_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)
    with ecs_standin_setup.standin() as ecs:
        async with EcsSubstrate(ecs_standin_setup.options(ecs)) as substrate:
            marks = [Marks() for _ in range(3)]
            made = [await substrate.create(spec(f"taxtui-r1-{number}"), Marks()) for number in range(3)]
            ecs.refuse("DescribeTasks", "ThrottlingException", times=2)
            await asyncio.gather(*(one.wait_ready(its) for one, its in zip(made, marks, strict=True)))
            await asyncio.gather(*(one.destroy() for one in made))
    told = [text for its in marks for text in its.notices]
    assert len(told) == 1, told
    assert told[0].startswith("throttled while looking up states, waited ")


async def test_what_an_adapter_has_to_say_is_a_notice_of_its_substrate() -> None:
    context = FakeContext()
    trial = trial_of(context)
    trial._trajectory.marks.notice("throttled")
    await trial.run(0)
    assert [event.text for event in context.of(Notice)] == ["fake: throttled"]
