"""What price sheets can say, and the ones that ship: every value with its source and its date."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import NoPrice, PriceError, Row, TrainingRun, load, project
from costmodel.pricing.sheet import PARTS, SHIPPED_PRICES, Meter, billed_ns, load_prices, priced_cell
from costmodel.projection.row import Cost
from tests.support.cost_model.costmodel_files import S, cell, trial, write

HOUR = 3600 * S
SHEETS = sorted(path.stem for path in SHIPPED_PRICES.glob("*.toml"))
HEAD = 'title = "ours"\ndate = 2026-05-01\n[[sandbox]]\nsubstrate = "docker"\nminimum_s = 0\nincrement_s = 1\n'


def sheet(folder: Path, keys: str, source: str = 'source = "a receipt"\n') -> Path:
    path = folder / "sheet.toml"
    path.write_text(HEAD + source + keys)
    return path


def row(
    folder: Path,
    keys: str,
    trials: Sequence[list[list[Any]]],
    source: str = 'source = "a receipt"\n',
    **training_run: Any,
) -> Row:
    """One trajectory's row, or as many as the training run asks for."""
    actions = next(len(event[6]) for event in trials[0] if event[0] == 6)
    recording = load(write(folder / "run.msgpack", trials, cell(actions=actions)))
    asked = TrainingRun(**{"trajectories": 1, "workers": 1} | training_run)
    (found,) = project([recording], asked, load_prices(sheet(folder, keys, source)))
    return found


def cost(*args: Any, **more: Any) -> Cost:
    return row(*args, **more).cost


@pytest.mark.parametrize("name", SHEETS)
def test_every_value_that_ships_has_a_source_and_a_date(name: str) -> None:
    prices = load_prices(name)
    assert prices.sandboxes
    for price in prices.sandboxes:
        assert "https://" in price.cited
        assert price.sheet.endswith(f"({prices.date})")
        assert price.usd(priced_cell(price.substrate, "", 1.0, 1024), HOUR) > 0
        second = {"vercel": "; https", "prime": "; a book"}.get(price.substrate)  # two sources that disagree
        assert price.disputed == (second is not None and second in price.cited)


@pytest.mark.parametrize(
    ("name", "cpus", "mib", "usd"),
    [
        ("daytona", 1.0, 1024, 0.0504 + 0.0162 + 3 * 0.000108),
        ("e2b", 2.0, 512, 0.1089),  # the provider's own worked example: "about $0.109 for the hour"
        ("modal", 2.0, 1024, 0.141912 + 0.024012),  # one physical core
        ("runloop", 1.0, 2048, 0.108 + 2 * 0.0252),
        ("novita", 1.0, 1024, 0.03528 + 0.01152),
        ("vercel", 0.5, 1024, 0.128 + 2 * 0.0212 + 6e-7),  # sold: a vCPU with 2 GB; all of it busy
        ("blaxel", 1.0, 4096, 4 * 0.0414),
        ("namespace", 4.0, 64 * 1024, 32 * 0.09),  # the provider's own example: a 4x64 is 32 units
        ("namespace", 16.0, 1024, 16 * 0.09),
        ("cloudflare", 1.0, 1024, 0.072 + 0.009),
    ],
)
def test_an_hour_of_what_is_sold(name: str, cpus: float, mib: int, usd: float) -> None:
    identity = priced_cell(name, "", cpus, mib)
    assert float(load_prices(name).sandbox(identity).usd(identity, HOUR)) == pytest.approx(usd, rel=1e-9)


def test_cpu_time_is_billed_where_it_is_known_and_bounded_where_it_is_not(tmp_path: Path) -> None:
    """A dollar per second of CPU time; unknown, it is none or all of the four seconds."""
    keys = 'cpu = "active"\nusd_per_vcpu_hour = 3600\n'
    found = row(tmp_path, keys, [trial(n, actions=(4 * S,), cpus=(S,)) for n in range(4)])
    assert found.cost.sandbox_usd.value == pytest.approx(1)
    assert "cpu_time_unknown" not in found.flags
    found = row(tmp_path, keys, [trial(n, actions=(4 * S,)) for n in range(4)])
    assert found.cost.sandbox_usd == (pytest.approx(2), 0, pytest.approx(4, rel=0.2))
    assert "cpu_time_unknown" in found.flags
    unmeasured = [trial(n, actions=(4 * S,), runs=(-1,)) for n in range(4)]
    assert cost(tmp_path, keys, unmeasured).sandbox_usd.value == pytest.approx(2)
    trials = [trial(n, actions=(4 * S,) * 3, cpus=(S,) * 3) for n in range(4)]
    assert [cost(tmp_path, keys, trials, actions=n).sandbox_usd.value for n in (1, 3, 6)] == pytest.approx([1, 3, 6])


@pytest.mark.parametrize(
    ("keys", "cpu_s", "usd"),
    [
        ('cpu = "greater"\nusd_per_vcpu_hour = 3600', 1, 7),  # 3 s to start and 4 s of work under 1 vCPU
        ('cpu = "greater"\nusd_per_vcpu_hour = 3600', 12, 12),  # on twelve vCPUs
        ("usd_per_vcpu_hour = 3600", 12, 7),
        ("usd_per_disk_gib_hour = 3600\ndisk_gib = 20", 1, 20 * 7),
        ("usd_per_hour = 3600\nusd_per_disk_gib_hour = 2\ndisk_gib = 0", 1, 7),
        ("usd_per_unit_hour = 3600\ngib_per_unit = 0.25", 1, 4 * 7),
        ("usd_per_create = 7", 1, 7),
    ],
)
def test_each_rate_is_billed_for_its_own_amount(tmp_path: Path, keys: str, cpu_s: int, usd: float) -> None:
    trials = [trial(n, actions=(4 * S,), cpus=(cpu_s * S,)) for n in range(4)]
    assert cost(tmp_path, keys, trials).sandbox_usd.value == pytest.approx(usd)


def test_what_is_not_in_the_bill_is_said_to_be_missing(tmp_path: Path) -> None:
    """What leaves the sandbox, and what a pool's other sandboxes cost."""
    trials = [trial(n) for n in range(4)]
    assert "egress_left_out" in row(tmp_path, "usd_per_hour = 1\nusd_per_egress_gib = 1", trials).flags
    recording = load(write(tmp_path / "run.msgpack", trials, cell(acquire="pool:warm")))
    prices = load_prices(sheet(tmp_path, "usd_per_hour = 1"))
    asked = TrainingRun(trajectories=1, workers=1)
    with_pool = replace(asked, warm_pool=1, refill_s=1.0)
    for training_run, sold, missing in ((asked, prices, True), (with_pool, prices, False), (asked, None, False)):
        assert ("pool_left_out" in project([recording], training_run, sold)[0].flags) == missing


def test_think_time_is_free_or_not_where_the_idle_are_not_billed(tmp_path: Path) -> None:
    trials = [trial(n, create=0, ready=0, actions=(S, S), thinks=(0, 8 * S)) for n in range(4)]
    keys = 'usd_per_hour = 3600\nidle = "free"'
    found = row(tmp_path, keys, trials)
    assert found.cost.sandbox_usd == (6, pytest.approx(2, rel=0.2), pytest.approx(10, rel=0.2))
    assert "idle_time_unknown" in found.flags
    assert cost(tmp_path, keys, trials, warm_pool=2, refill_s=1.0).idle_pool_usd == 0


def test_sources_that_disagree_make_a_range(tmp_path: Path) -> None:
    trials = [trial(n, create=0, ready=0, actions=(3600 * S,)) for n in range(4)]
    found = row(tmp_path, "usd_per_hour = [2, 4]", trials, source='source = ["one", "another"]\n', run_sd=0.0)
    assert found.cost.sandbox_usd == (pytest.approx(3), pytest.approx(2), pytest.approx(4))
    assert "prices_disputed" in found.flags
    assert found.cost.usd_per_sandbox_hour == 4


@pytest.mark.parametrize("provider", ["blaxel", "daytona", "e2b", "modal", "novita", "runloop", "vercel"])
def test_a_harness_costs_what_the_provider_behind_it_costs(provider: str) -> None:
    prices = load_prices(provider)
    behind = prices.sandbox(priced_cell("harbor", provider, 2, 4096))
    assert behind == prices.sandbox(priced_cell(provider, "", 2, 4096))
    with pytest.raises(PriceError):
        prices.sandbox(priced_cell("harbor", "elsewhere", 2, 4096))


def test_shipped_sheets_are_found_combined_and_named(tmp_path: Path) -> None:
    identity = priced_cell("ecs", "fargate", 1.0, 1024)
    ecs = load_prices("aws-fargate").sandbox(identity)
    assert ecs.usd_hour(identity) == pytest.approx(0.04048 + 2 * 0.004445 + 0.005)  # 1 GiB is sold as 2
    assert ecs.minimum_ns == 60 * S
    both = load_prices(sheet(tmp_path, "usd_per_hour = 1")).combined_with(load_prices("e2b"))
    for substrate, named in (("e2b", "E2B (2026-08-08)"), ("docker", "ours (2026-05-01)")):
        assert both.sandbox(priced_cell(substrate, "", 1.0, 1024)).sheet == named
    assert both.title == "ours and E2B"
    with pytest.raises(PriceError, match="shipped are aws-fargate, blaxel"):
        load_prices("nowhere")


WHOLE = f'{HEAD}source = "a receipt"\n'
BARE = 'date = 2026-01-01\n[[sandbox]]\nsubstrate = "x"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{WHOLE}usd_per_unit_hour = 1", "usd_per_unit_hour needs gib_per_unit; add gib_per_unit = ?"),
        (f"{WHOLE}usd_per_disk_gib_hour = 1", "usd_per_disk_gib_hour needs disk_gib"),
        (f"{WHOLE}usd_per_unit_hour = 1\ngib_per_unit = 0", "gib_per_unit: expected `float` > 0"),
        (f'{WHOLE}usd_per_hour = 1\ncpu = "active"', "cpu = 'active' needs usd_per_vcpu_hour; add usd_per_vcpu_h"),
        (f'{WHOLE}usd_per_vcpu_hour = 1\ncpu = "used"', "invalid enum value 'used'; known: provisioned, active, gr"),
        (f'{WHOLE}usd_per_hour = 1\nidle = "cheap"', "idle: invalid enum value 'cheap'; known: billed, free"),
        (f"{WHOLE}usd_per_hour = [1, 2]", "usd_per_hour is a range, which needs the sources that disagree"),
        (f"{WHOLE}usd_per_hour = [2, 1]", r"usd_per_hour must be \[least, most\]"),
        (f'{WHOLE}usd_per_hour = 1\nsizes = "large"', "unknown sizes 'large'; known: fargate, vercel"),
        (f"{WHOLE}usd_per_vcpu_hour = -2", "usd_per_vcpu_hour: expected `float` >= 0"),
        (WHOLE, r"sandbox\[1\].*no price; give at least one of"),
        (f"{WHOLE}usd_per_hour = 1\nsubstrat = 'x'", r":9: sandbox\[1\].substrat: unknown key; did you mean 'substr"),
        ("[worker]\nusd_per_hour = 1", "needs its date"),
        ('date = 2026-01-01\ncurrency = "EUR"', r":2: currency: invalid enum value 'EUR'; known: USD"),
        (BARE, r":2: sandbox\[1\]: .*missing required field `source`; add source = "),
        (f'{BARE}\nsource = "a"\nincrement_s = 1\nusd_per_hour = 1', "missing required field `minimum_s`"),
    ],
)
def test_what_a_sheet_lacks_is_one_line_with_what_to_write(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sheet.toml"
    path.write_text(text)
    with pytest.raises(PriceError, match=message) as error:
        load_prices(path)
    assert "\n" not in str(error.value)


@settings(max_examples=40, deadline=None)
@given(*[st.integers(0, 10**13)] * 2, st.integers(0, 4000), *[st.floats(0, 10)] * 2, st.booleans())
def test_more_of_anything_is_never_cheaper(
    ns: int, cpu_ns: int, included: int, own: float, cpu: float, create: bool
) -> None:
    meter = Meter(round(own * PARTS), round(cpu * PARTS), int(create), included, 60 * S, S)
    bill = meter.billed(ns, cpu_ns)
    assert bill >= 0
    assert meter.billed(ns, cpu_ns + S) >= bill
    assert meter._replace(included_milli=0).billed(ns, cpu_ns) >= bill
    one, other = billed_ns(ns, 60 * S, S), billed_ns(cpu_ns, 60 * S, S)
    assert max(ns, one) == one <= billed_ns(ns + cpu_ns, 60 * S, S) <= one + other


@pytest.mark.parametrize(
    ("keys", "usd"),
    [
        ('cpu = "active"\nusd_per_vcpu_hour = 3600\nusd_per_create = 2', (40 * 3.5,) * 3),
        ("usd_per_hour = [1800, 5400]", (40 * 6, 40 * 3, 40 * 9)),  # sources that disagree make a range
    ],
)
def test_in_steps_a_run_is_billed_by_the_same_rates(tmp_path: Path, keys: str, usd: tuple[float, ...]) -> None:
    trials = [trial(n, actions=(S,) * 3, cpus=(S // 2,) * 3) for n in range(20)]
    steps = {"trajectories": 40, "workers": 10, "batch": 10, "failure_rate": 1e-9, "run_sd": 0.0}
    found = row(tmp_path, keys, trials, 'source = ["a", "b"]\n', **steps)
    assert found.attribution is not None
    assert found.cost.sandbox_usd == pytest.approx(usd, rel=0.01)


def test_a_price_of_its_variant_is_stale_after_a_year_and_a_missing_one_is_named(tmp_path: Path) -> None:
    """A variant without a price of its own has that of its substrate."""
    own = '[[sandbox]]\nsubstrate = "docker"\nvariant = "runsc"\nsource = "x"\nminimum_s = 0\nincrement_s = 1\n'
    prices = load_prices(sheet(tmp_path, f"usd_per_hour = 1\n{own}usd_per_hour = 7.5\n[worker]\nusd_per_hour = 0.5"))
    assert prices.worker_usd_hour == 0.5
    plain, runsc, kata = (priced_cell("docker", variant, 1.0, 1024) for variant in ("", "runsc", "kata"))
    assert [prices.sandbox(one).usd_hour(one) for one in (plain, runsc, kata)] == [1, 7.5, 1]
    today = datetime.datetime.now(datetime.UTC).date()
    for days, stale in ((365, False), (366, True)):
        assert msgspec.structs.replace(prices.sandbox(plain), date=today - datetime.timedelta(days)).stale == stale
    with pytest.raises(NoPrice, match=r"^ours has no price for modal:gpu; add a \[\[sandbox\]\] for it, with .*gpu"):
        prices.sandbox(priced_cell("modal", "gpu", 1.0, 1024))
