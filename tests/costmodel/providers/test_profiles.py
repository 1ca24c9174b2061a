"""What providers let one account do: what a training run leaves open is filled, what it says stays, and sources are
told."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from costmodel import TrainingRun, TrainingRunError, load_prices
from costmodel.providers.provider import known_profiles, load_profile


@pytest.mark.parametrize("name", known_profiles())
def test_every_limit_that_ships_has_a_source_and_a_date(name: str) -> None:
    profile = load_profile(name)
    assert profile.source.startswith("https://")
    assert datetime.date(2025, 1, 1) < profile.date < datetime.date(2027, 1, 1)
    assert sum(str(profile.date) in line for line in profile.lines) >= 1
    TrainingRun(**profile.filled({"trajectories": 10, "workers": 2}))


def test_what_is_not_asked_is_filled_and_what_is_asked_stays() -> None:
    pro = load_profile("e2b-pro")
    assert pro.filled({"workers": 9}) == {"workers": 9, "quota": 100, "create_rate": 5.0, "create_burst": 5}
    assert pro.filled({"quota": 3, "create_rate": None}) == {"quota": 3, "create_rate": 5.0, "create_burst": 5}
    assert pro.filled({"create_rate": 50.0}) == {"quota": 100, "create_rate": 50.0}  # its burst is of another rate
    assert pro.filled({"create_burst": 7})["create_burst"] == 7
    assert load_profile("render").filled({}) == {"quota": 1000}


def test_a_bare_name_is_the_shipped_one_beside_any_file_or_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "modal").mkdir()
    (tmp_path / "daytona").write_text("concurrent = 1")
    assert load_profile("modal").creates_per_s == 40
    assert load_profile("daytona").creates_per_s == 10
    assert load_prices("modal").sandboxes


def test_who_says_otherwise_is_told() -> None:
    said = load_profile("daytona").lines
    assert any("creates_per_s 10 (https://www.daytona.io/docs/en/rate-limits, 2026-11-22)" in line for line in said)
    assert any("0.0333333 says https://www.mintlify.com" in line for line in said)
    assert not any("600 creates" in line for line in load_profile("daytona-disputed").lines)


def test_an_unknown_profile_is_one_line_with_the_known_ones() -> None:
    with pytest.raises(
        TrainingRunError,
        match=r"cannot read e2b: .*; shipped are coreweave, coreweave-disputed, .*, vercel-pro-disputed$",
    ):
        load_profile("e2b")
    with pytest.raises(TrainingRunError, match=r"cannot read nowhere\.toml"):
        load_profile("nowhere.toml")


WHOLE: dict[str, Any] = {"substrate": '"x"', "source": '"y"', "date": "2026-01-01", "concurrent": "5"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"date": None}, "a profile needs its date"),
        ({"source": None}, 'missing required field `source`; add source = "…"'),
        ({"concurrent": None}, "no limit; give at least one of concurrent, creates_per_s, burst"),
        ({"concurrent": "0"}, ":4: concurrent: expected `int` >= 1"),
        ({"creates_per_s": "-1"}, "creates_per_s: expected `float` > 0"),
        ({"burst": "5"}, "a burst is an exception to a rate; add creates_per_s = ?"),
    ],
)
def test_bad_profiles_are_one_line(tmp_path: Path, change: dict[str, str | None], message: str) -> None:
    path = tmp_path / "ours.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in (WHOLE | change).items() if value is not None))
    with pytest.raises(TrainingRunError, match=message) as error:
        load_profile(path)
    assert "\n" not in str(error.value)
