"""A tier that was written is the tier that is read, whatever its commands hold."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.errors import ScenarioError
from taxtui.plan import scenario
from taxtui.plan.scenario import load_tier
from taxtui.plan.spec import Step, Tier
from taxtui.workloads.repository import to_toml

texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["", "'", "'''", 'say "hi"\n', "a\\\nb", "\n", "\r\n", "it's\nfine'", "\x7f\x00", "line\n'''\nend"]
)
steps = st.builds(Step, name=texts, run=texts, expect_stdout=texts, timeout_s=st.none() | st.floats(0.001, 1e6))


@settings(max_examples=60)
@given(
    tier=st.builds(
        Tier,
        name=texts,
        title=texts,
        requires=st.lists(texts, max_size=2).map(tuple),
        network=st.booleans(),
        preload=texts,
        setup=st.lists(steps, max_size=1).map(tuple),
        cycle=st.lists(steps, min_size=1, max_size=2).map(tuple),
    )
)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, tier: Tier) -> None:
    path = tmp_path_factory.mktemp("tier") / "made.toml"
    path.write_bytes(to_toml(tier, "made by a test").encode())
    assert load_tier(str(path)) == tier


CELLS = '[[cells]]\nsubstrates = ["local"]\ntiers = ["mine.toml"]\nactions = [2]\n'


def _mine(folder: Path, think: str) -> None:
    step = '[[cycle]]\nname = "one"\nrun = "true"\n'
    (folder / "mine.toml").write_text(f'name = "M"\ntitle = ""\nthink = "{think}"\n{step}')


def test_a_cell_thinks_as_its_tier_does_unless_told_otherwise(tmp_path: Path) -> None:
    _mine(tmp_path, "lognormal:8s,0.6")
    (tmp_path / "own.toml").write_text(CELLS)
    (tmp_path / "told.toml").write_text(CELLS + 'think = "0s"\n')
    thinks = [str(scenario.load(str(tmp_path / name)).cells[0].think) for name in ("own.toml", "told.toml")]
    assert thinks == ["lognormal:8s,0.6", "0s"]


def test_a_think_time_that_is_none_is_said_with_its_file(tmp_path: Path) -> None:
    _mine(tmp_path, "long")
    with pytest.raises(ScenarioError, match=r"mine\.toml: think: .*not a duration"):
        load_tier("mine.toml", tmp_path)
