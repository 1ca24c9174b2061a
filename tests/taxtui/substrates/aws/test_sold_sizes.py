"""Sizes and prices of AWS sandboxes: the billed size is the size in the request."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import NoPrice, PriceError, load_prices
from costmodel.pricing.instance_sizes import sold_size
from costmodel.pricing.sheet import priced_cell
from taxtui.errors import CreateFailed
from taxtui.plan.spec import Limits
from taxtui.substrates.aws.ec2 import Ec2Options
from taxtui.substrates.aws.ecs import EcsOptions
from taxtui.substrates.aws.ecs.task import fargate_size

VCPU_USD, GIB_USD, ADDRESS_USD = 0.04048, 0.004445, 0.005


@pytest.mark.parametrize(
    ("cpus", "mib", "vcpu", "gib"),
    [
        (1.0, 1024, 1, 2),
        (1.5, 3000, 2, 4),
        (0.25, 512, 0.25, 0.5),
        (0.25, 3072, 0.5, 3),
        (2.0, 3000, 2, 4),
        (4.0, 31_000, 8, 32),
        (16.0, 122_880, 16, 120),
    ],
)
def test_what_is_asked_for_is_billed_and_bought_as_the_next_size_that_is_sold(
    cpus: float, mib: int, vcpu: float, gib: float
) -> None:
    identity = priced_cell("ecs", "fargate", cpus, mib)
    usd = load_prices("aws-fargate").sandbox(identity).usd_hour(identity)
    assert usd == pytest.approx(vcpu * VCPU_USD + gib * GIB_USD + ADDRESS_USD)
    bought = fargate_size(Limits(cpus=cpus, memory_mib=mib))
    assert bought == (vcpu * 1024, gib * 1024)


def test_what_nobody_sells_is_said_before_anything_is_made() -> None:
    with pytest.raises(PriceError, match="fargate sells nothing with 17 vCPU"):
        load_prices("aws-fargate").sandbox(priced_cell("ecs", "fargate", 17.0, 1024))
    with pytest.raises(CreateFailed, match="17 vCPU"):
        fargate_size(Limits(cpus=17.0))
    assert sold_size("fargate", 16_001, 1) is None


@pytest.mark.parametrize(
    ("options", "address_usd", "vcpu_usd"),
    [
        (EcsOptions(), ADDRESS_USD, VCPU_USD),
        (EcsOptions(public_address=False), 0.0, VCPU_USD),
        (EcsOptions(arch="ARM64"), ADDRESS_USD, 0.03238),
    ],
)
def test_the_address_and_the_architecture_are_in_the_variant_and_in_the_bill(
    options: EcsOptions, address_usd: float, vcpu_usd: float
) -> None:
    identity = priced_cell("ecs", options.variant, 1.0, 2048)
    price = load_prices("aws-fargate").sandbox(identity)
    assert (price.rate("usd_per_address_hour"), price.rate("usd_per_vcpu_hour")) == (address_usd, vcpu_usd)


def test_what_has_no_fixed_price_has_none() -> None:
    with pytest.raises(NoPrice):
        load_prices("aws-fargate").sandbox(priced_cell("ecs", EcsOptions(spot=True).variant, 1.0, 2048))


def test_an_instances_disk_and_address_are_in_its_variant_and_in_its_bill(tmp_path: Path) -> None:
    assert Ec2Options().variant == "m7i.large"
    assert Ec2Options(disk_gib=100, address="private", spot=True).variant == "m7i.large spot private 100GiB"
    sheet = tmp_path / "ec2.toml"
    sheet.write_text(
        'date = 2026-01-01\n[[sandbox]]\nsubstrate = "ec2"\nvariant = "m7i.large"\nusd_per_hour = 0.1\n'
        'usd_per_address_hour = 0.005\nusd_per_disk_hour = 0.0018\nminimum_s = 60\nincrement_s = 1\nsource = "x"\n'
    )
    identity = priced_cell("ec2", "m7i.large", 2.0, 8192)
    assert load_prices(sheet).sandbox(identity).usd_hour(identity) == pytest.approx(0.1068)
    with pytest.raises(NoPrice, match="100GiB"):
        load_prices(sheet).sandbox(priced_cell("ec2", Ec2Options(disk_gib=100).variant, 2.0, 8192))
