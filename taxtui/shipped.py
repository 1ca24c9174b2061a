"""The substrates that taxtui ships, one row each, with all facts for modules that import no substrate.

A substrate has a row here, an entry point and an extra in ``pyproject.toml``, and a page in ``docs/substrates``;
``tests/taxtui/substrates/test_shipped.py`` compares the three. The substrate of a third party has the default values.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple

Look = tuple[str, str]
"""A glyph and its colour as #rrggbb."""


class ShippedSubstrate(NamedTuple):
    """One substrate."""

    name: str  # for -s
    entry_point: str = ""  # module:class
    extra: str = ""  # of taxtui, with the SDK; "" without an SDK
    packages: tuple[str, ...] = ()  # of the SDK; doctor prints their versions
    oldest_python: tuple[int, int] = (3, 11)  # of the SDK: an older Python installs nothing
    here: bool = False  # sandboxes share the cores of this machine
    price_sheet: str = ""  # shipped, for --prices
    usual_variant: str = ""  # the variant with the look of the substrate
    look: Look = ("•", "#999999")  # on screens
    variant_looks: tuple[Look, ...] = ()  # of further variants: shapes and shades
    page_colours: tuple[str, str] = ("", "")  # on a light and a dark page; "": the next free colour


_ROWS: Final = (
    ShippedSubstrate(
        "local",
        "taxtui.substrates.local.substrate:LocalSubstrate",
        here=True,
        usual_variant="bwrap",
        look=("○", "#F0E442"),
        variant_looks=(("◌", "#B8AF1F"), ("⊙", "#F7F1A0")),
        page_colours=("#857500", "#f0e442"),
    ),
    ShippedSubstrate(
        "docker",
        "taxtui.substrates.docker.substrate:DockerSubstrate",
        extra="docker",
        packages=("docker",),
        here=True,
        usual_variant="runc",
        look=("●", "#56B4E9"),
        variant_looks=(("◉", "#2E8FD0"), ("◍", "#A9D8F3"), ("◐", "#4A7FB5"), ("◒", "#8AB8FF"), ("◎", "#C5E4F5")),
        page_colours=("#2378b5", "#56b4e9"),
    ),
    ShippedSubstrate(
        "kubernetes",
        "taxtui.substrates.kubernetes.substrate:KubernetesSubstrate",
        extra="kubernetes",
        packages=("kubernetes",),
        look=("◆", "#009E73"),
        variant_looks=(("◈", "#56D6B0"), ("◇", "#3D8A72")),
        page_colours=("#007f62", "#00b483"),
    ),
    ShippedSubstrate(
        "daytona",
        "taxtui.substrates.daytona.substrate:DaytonaSubstrate",
        extra="daytona",
        packages=("daytona",),
        price_sheet="daytona",
        look=("▲", "#E69F00"),
        variant_looks=(("△", "#FFD27F"), ("◬", "#B98420")),
        page_colours=("#a86400", "#e69f00"),
    ),
    ShippedSubstrate(
        "ec2",
        "taxtui.substrates.aws.ec2.substrate:Ec2Substrate",
        extra="aws",
        packages=("boto3", "asyncssh"),
        look=("■", "#D55E00"),
        variant_looks=(("□", "#FF9A5C"), ("▣", "#B5683A")),
        page_colours=("#c04f00", "#e8702a"),
    ),
    ShippedSubstrate(
        "ecs",
        "taxtui.substrates.aws.ecs.substrate:EcsSubstrate",
        extra="aws",
        packages=("boto3", "websockets"),
        price_sheet="aws-fargate",
        usual_variant="fargate",
        look=("▼", "#CC79A7"),
        variant_looks=(("▽", "#E7BFD6"), ("⧩", "#A8688C")),
        page_colours=("#ad5285", "#cc79a7"),
    ),
    ShippedSubstrate(
        "ssh",
        "taxtui.substrates.ssh.substrate:SshSubstrate",
        extra="ssh",
        packages=("asyncssh",),
    ),
    ShippedSubstrate(
        "swerex",
        "taxtui.substrates.harness.swerex:SwerexSubstrate",
        extra="swerex",
        packages=("swe-rex",),
        here=True,
    ),
    ShippedSubstrate(
        "inspect",
        "taxtui.substrates.harness.inspect:InspectSubstrate",
        extra="inspect",
        packages=("inspect_ai",),
        here=True,
    ),
    ShippedSubstrate(
        "harbor",
        "taxtui.substrates.harness.harbor:HarborSubstrate",
        extra="harbor",
        packages=("harbor",),
        oldest_python=(3, 12),
        here=True,
    ),
)

SUBSTRATES: Final = MappingProxyType({row.name: row for row in _ROWS})
"""Name → row, in the order of pages and lists."""


def row_of(name: str) -> ShippedSubstrate:
    """Return the row of a substrate; for a third party's substrate a row of defaults."""
    return SUBSTRATES.get(name) or ShippedSubstrate(name)
