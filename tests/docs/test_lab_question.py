"""The lab's question is answered as its page says, with the demand that ships."""

from __future__ import annotations

import pytest

from costmodel.recording.reader import CellIdentity
from tests.docs.pages import ROOT, blocks
from tests.support import lab_question


def test_the_demand_of_the_page_is_the_one_that_ships() -> None:
    assert blocks("lab-question.md", "toml") == [lab_question.DEMAND.read_text(encoding="utf-8")]


def test_every_value_of_the_demand_has_a_source() -> None:
    import tomllib

    document = tomllib.loads(lab_question.DEMAND.read_text(encoding="utf-8"))
    sources, places = document.pop("sources"), document.pop("at")
    tables = [*document.values(), *(table for place in places.values() for table in place.values())]
    keys = {key for table in tables for key in table} - {"compose"}  # whose sources are in what is composed
    assert keys == set(sources)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "output"), lab_question.shown())
def test_the_commands_of_the_page_print_this(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lab_question.told(command) == output


def test_the_notebook_of_the_page_asks_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is simulated is left out: that is tried above."""
    import costmodel

    [source] = blocks("lab-question.md", "python")
    asked = []

    def project(_: object, demand: costmodel.Demand, wanted: object) -> list[costmodel.Projection]:
        asked.append(demand)
        assert callable(wanted)
        assert (
            wanted(CellIdentity(*["docker" if name == "substrate" else "" for name in CellIdentity._fields])) is False
        )
        raise KeyboardInterrupt

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(costmodel, "project", project)
    with pytest.raises(KeyboardInterrupt):
        exec(compile(source, "lab-question.md", "exec"), {})
    [demand] = asked
    assert (demand.pods, demand.step_rollouts, demand.images.count) == (2000, 1024, 500)
