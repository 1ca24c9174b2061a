"""Retries, throttles, steps, warm pools, money and intervals, each against a value worked out by hand."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from costmodel import Images, NoPrice, Think, TrainingRun, TrainingRunError, load_prices
from costmodel.recording.trial import CellIdentity
from costmodel.simulation.attempts import Retries
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import (
    Interval,
    difference,
    mean_interval,
    quantile,
    ratio_interval,
    student_t,
    wilson_interval,
)
from tests.support.cost_model.costmodel_files import CELL

S = 10**9
IDENTITY = CellIdentity(*(CELL[field] for field in CellIdentity._fields))


def test_retries_by_hand() -> None:
    fifth = Retries(Fraction(1, 5), 2)
    assert (fifth.attempts, fifth.delivered) == (Fraction(6, 5), Fraction(24, 25))
    assert Retries(Fraction(1, 5), None).attempts == Fraction(5, 4)
    assert float(Retries(Fraction(1, 2), 1000).delivered) == pytest.approx(1)


SHEET = """
date = 2026-01-01
[[sandbox]]
substrate = "docker"
usd_per_vcpu_hour = 2
usd_per_gib_hour = 1
minimum_s = 60
increment_s = 10
source = "a receipt"
[[sandbox]]
substrate = "docker"
variant = "runsc"
usd_per_hour = 7.5
minimum_s = 0
increment_s = 1
source = "a receipt"
[worker]
usd_per_hour = 0.5
"""


def test_price_sheets(tmp_path: Path) -> None:
    path = tmp_path / "sheet.toml"
    path.write_text(SHEET)
    prices = load_prices(path)
    assert prices.worker_usd_hour == 0.5
    price = prices.sandbox(IDENTITY)
    today = datetime.datetime.now(datetime.UTC).date()
    assert not msgspec.structs.replace(price, date=today - datetime.timedelta(365)).stale
    assert msgspec.structs.replace(price, date=today - datetime.timedelta(366)).stale
    assert price.usd_hour(IDENTITY) == 3
    assert price.usd(IDENTITY, 65 * S) == Fraction(70 * 3, 3600)
    runsc = IDENTITY._replace(variant="runsc")
    assert prices.sandbox(runsc).usd_hour(runsc) == 7.5
    assert prices.sandbox(IDENTITY._replace(variant="kata")).usd_hour(IDENTITY) == 3
    with pytest.raises(NoPrice, match=r"^sheet.toml has no price for modal:gpu; add a \[\[sandbox\]\] for it$"):
        prices.sandbox(IDENTITY._replace(substrate="modal", variant="gpu"))


def test_students_quantiles() -> None:
    tabulated = {1: 12.7062, 2: 4.3027, 3: 3.1824, 10: 2.2281, 30: 2.0423, 200: 1.9719, 1000: 1.9623}
    for freedom, value in tabulated.items():
        assert student_t(freedom) == pytest.approx(value, abs=1e-4)


def test_intervals() -> None:
    assert mean_interval([1.0, 2.0]) == Interval(1.5)
    assert mean_interval([2.0] * 5) == Interval(2, 2, 2)
    assert Interval(2, 1, 3).widened(Interval(0, -1, 1)) == Interval(2, 0, 4)
    assert Interval(2, 1, 3).widened(Interval(0)) == Interval(2)
    symmetric = mean_interval([1, 2, 3, 4, 5])
    half = student_t(4) * math.sqrt(2.5 / 5)
    assert symmetric.low == pytest.approx(3 - half)
    assert symmetric.high == pytest.approx(3 + half)
    skewed = mean_interval([1.0] * 20 + [30.0])
    assert skewed.high - skewed.value > skewed.value - skewed.low


def test_ratios_and_differences() -> None:
    ratio = ratio_interval([10, 20, 3, 30], [1, 1, 0, 1])
    assert ratio.value == 21
    a, b = Interval(10, 8, 13), Interval(4, 3, 6)
    assert difference(a, b) == Interval(6, 6 - math.hypot(2, 2), 6 + math.hypot(3, 1))
    assert difference(a, Interval(4)) == Interval(6)
    assert Interval(2, 1, None).times(3) == Interval(6, 3, None)


def test_wilson_and_quantiles() -> None:
    assert wilson_interval(0, 100) == pytest.approx((0, 0, 0.0370), abs=1e-4)
    assert wilson_interval(100, 100).high == 1
    assert {wilson_interval(0, n).low for n in range(1, 400)} == {0.0}, "and no 7e-16, as rounding would have it"
    assert [quantile([1, 2, 3, 4], p) for p in (0, 0.25, 0.5, 0.51, 1)] == [1, 1, 2, 3, 4]


STEPS: dict[str, object] = {"prompts": 5, "group_size": 4}
PODS: dict[str, object] = {"nodes": 3, "pods_per_node": 4}
IMAGES = Images.between(2, 8, 10)


@pytest.mark.parametrize(("sizes", "message"), [([], "1 to"), ([2, 0], "above 0"), ([-1.0], "above 0")])
def test_images_refuse_nonsense(sizes: list[float], message: str) -> None:
    with pytest.raises(TrainingRunError, match=message):
        Images.of(sizes)


def test_images_of_a_range_lie_evenly_in_it() -> None:
    assert Images.between(2, 8, 3).sizes_gb == (3, 5, 7)
    assert (IMAGES.count, IMAGES.total_gb, str(Images.between(4, 4, 2))) == (10, pytest.approx(50), "2 of 4 GB")
    with pytest.raises(TrainingRunError, match="smaller size comes first"):
        Images.between(8, 2, 3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trajectories": -1}, "trajectories must be"),
        ({"workers": 0}, "workers must be"),
        ({"trajectories": 1.5}, "trajectories must be"),
        ({"workers": True}, "workers must be"),
        ({"actions": 0}, "actions must be"),
        ({"quota": 0}, "quota must be"),
        ({"timeout_s": 0.0}, "timeout_s must be"),
        ({"timeout_s": math.nan}, "timeout_s must be"),
        ({"create_rate": math.inf}, "create_rate must be"),
        ({"backoff_s": -1.0}, "backoff_s must be"),
        ({"think": Think(-1)}, "think time must be"),
        ({"think": Think(1, math.nan)}, "think time must be"),
        ({"train_s": 5.0}, "--batch"),
        ({"gpus": 8}, "--batch"),
        ({"policy": "sync"}, "--batch"),
        ({"policy": "later"}, "sync, one-step-off, async"),
        ({"batch": 10, "gpu_usd_hour": 2.0}, "--gpus"),
        ({"batch": 1000}, "more than the 100 trajectories"),
        ({"batch": 10, "over_provision": 0.1, "policy": "async"}, "barrier"),
        ({"refill_s": 1.0}, "--warm-pool"),
        ({"warm_pool": 5}, "exactly one of"),
        ({"warm_pool": 5, "refill_s": 1.0, "group_size": 8}, "exactly one of"),
        ({"create_burst": 5}, "--create-rate"),
        ({"group_size": 4}, "--prompts"),
        ({"prompts": 5}, "--group-size"),
        ({"prompts": 0, "group_size": 4}, "prompts must be"),
        ({"batch": 8, "prompts": 5, "group_size": 4}, "a batch of 20, not 8"),
        ({"prompts": 50, "group_size": 4}, "a batch of 200 is more than the 100 trajectories"),
        ({"failure_rate": 0.1}, "--prompts"),
        (STEPS | {"failure_rate": 1.0}, "below 1"),
        (STEPS | {"failure_rate": -0.1}, "failure_rate must be"),
        (STEPS | {"failure_rate": 0.1, "failure_hazard": 0.1}, "give one of"),
        (STEPS | {"on_failure": "ignore"}, "retry, mask, resample"),
        (STEPS | {"on_failure": "mask", "max_attempts": 3}, "--max-attempts"),
        (STEPS | {"on_failure": "resample", "backoff_s": 1.0}, "--backoff-seconds"),
        (STEPS | {"on_failure": "resample", "over_provision": 0.1}, "over-provisioning"),
        ({"batch": 20, "on_failure": "resample"}, "--group-size"),
        (STEPS | {"think_correlation": 0.5}, "--think"),
        (STEPS | {"think_correlation": 1.5}, "from 0 to 1"),
        (STEPS | {"staleness": 1}, "--policy async"),
        (STEPS | {"nodes": 2}, "--pods-per-node"),
        (STEPS | {"nodes": 0, "pods_per_node": 9}, "nodes must be"),
        (STEPS | {"nodes": 1, "pods_per_node": 3}, "one group of 4"),
        (STEPS | {"node_usd_hour": 1.0}, "--nodes"),
        (STEPS | {"placement": "spread"}, "--images"),
        (STEPS | {"pull_gb_s": 1.0}, "--images"),
        (STEPS | {"images": IMAGES}, "--nodes"),
        (STEPS | PODS | {"images": IMAGES}, "--pull-gb-s"),
        (STEPS | PODS | {"images": IMAGES, "pull_gb_s": 1.0, "placement": "prepulled"}, "one of --pull-gb-s"),
        (STEPS | PODS | {"images": IMAGES, "pull_gb_s": 1.0, "node_disk_gib": 5.0}, "does not fit"),
        (STEPS | PODS | {"images": IMAGES, "placement": "prepulled", "node_disk_gib": 20.0}, "do not fit"),
        (STEPS | PODS | {"images": IMAGES, "pull_gb_s": 1.0, "warm_pool": 5, "refill_s": 1.0}, "--images"),
    ],
)
def test_contradictory_training_runs_are_one_line(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(TrainingRunError, match=message) as error:
        TrainingRun(**{"trajectories": 100, "workers": 5} | wrong)
    assert "\n" not in str(error.value)


def test_laws_refuse_nonsense() -> None:
    for sample in ([-1], [math.nan], [math.inf], []):
        with pytest.raises(TrainingRunError):
            Distribution.of(sample)
    assert Distribution.of([2, 4]).scaled(1, 4).values == [1]
