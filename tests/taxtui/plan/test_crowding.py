from __future__ import annotations

import pytest

from taxtui.plan import crowding
from taxtui.tui.setup.form import Choices


@pytest.mark.parametrize(
    ("substrates", "concurrency", "cores", "begins"),
    [
        (("local",), "2", 2, ""),
        (("local", "docker"), "3", 2, "local, docker: 3 sandboxes at a time on 2 cores wait"),
        (("docker",), "2", 1, "docker: 2 sandboxes at a time on 1 core wait"),
        (("ec2",), "64", 2, ""),  # elsewhere
    ],
)
def test_more_sandboxes_at_a_time_than_cores_are_warned_of(
    substrates: tuple[str, ...], concurrency: str, cores: int, begins: str
) -> None:
    plan = Choices(substrates=substrates, tiers=("T0",), actions="10", modes=("exec",), concurrency=concurrency).plan()
    said = crowding.words(plan, cores)
    assert said.startswith(begins)
    assert bool(said) == bool(begins)
