"""A tier that was written is the tier that is read, whatever its commands hold."""

import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.errors import ScenarioError, UsageError
from taxtui.plan import scenario
from taxtui.plan.scenario import load_tier
from taxtui.plan.spec import Step, Tier
from taxtui.workloads.tier_file import to_toml, write_new

texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["", "'", "'''", 'say "hi"\n', "a\\\nb", "\n", "\r\n", "it's\nfine'", "\x7f\x00", "line\n'''\nend"]
)
steps = st.builds(
    Step,
    name=texts,
    run=texts,
    expect_exit=st.integers(0, 255),
    expect_stdout=texts,
    timeout_s=st.none() | st.floats(0.001, 1e6),
)


@settings(max_examples=60)
@given(
    tier=st.builds(
        Tier,
        name=texts,
        title=texts,
        requires=st.lists(texts, max_size=2).map(tuple),
        network=st.booleans(),
        think=st.sampled_from(["", "8s", "lognormal:8s,0.6"]),
        preload=texts,
        setup=st.lists(steps, max_size=1).map(tuple),
        cycle=st.lists(steps, min_size=1, max_size=2).map(tuple),
    ),
    remark=texts,
)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, tier: Tier, remark: str) -> None:
    path = tmp_path_factory.mktemp("tier") / "made.toml"
    write_new(path, to_toml(tier, [remark], {0: remark}))
    assert load_tier(str(path)) == tier


def test_a_file_is_never_overwritten_and_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "made.toml"
    write_new(path, "one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="exists"):
        write_new(path, "two")
    assert path.read_text() == "one"


CELLS = '[[cells]]\nsubstrates = ["local"]\ntiers = ["mine.toml"]\nactions = [2]\n'


def _mine(folder: Path, think: str) -> None:
    tier = Tier(name="M", title="", think=think, cycle=(Step(name="one", run="true"),))
    (folder / "mine.toml").write_text(to_toml(tier))


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
