"""The colours of a page: readable on light and on dark, and different for what is different."""

from __future__ import annotations

import pytest

from taxtui.report.page.palette import OTHERS, RULE, SHADES, SUBSTRATES, SURFACE, looks
from taxtui.tui import colours

READABLE = 4.5


def luminance(colour: str) -> float:
    """WCAG 2's, from 0 (black) to 1 (white)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("role", [role for role in SHADES if role not in (SURFACE, "panel", RULE)])
def test_every_mark_and_text_stands_out_from_the_page(role: str) -> None:
    shade, surface = SHADES[role], SHADES[SURFACE]
    assert contrast(shade.light, surface.light) >= READABLE
    assert contrast(shade.dark, surface.dark) >= READABLE


@pytest.mark.parametrize("role", ["ink", "muted", "link"])
def test_text_stands_out_from_a_table_s_head_and_from_code(role: str) -> None:
    assert contrast(SHADES[role].light, SHADES["panel"].light) >= READABLE
    assert contrast(SHADES[role].dark, SHADES["panel"].dark) >= READABLE


def test_a_colour_that_is_drawn_tells_its_role() -> None:
    assert len({shade.light for shade in SHADES.values()}) == len(SHADES)


def test_substrates_look_as_on_the_screens_where_those_are_readable() -> None:
    for name in SUBSTRATES:
        own = colours.SUBSTRATES[name][1].lower()
        if contrast(own, SHADES[SURFACE].dark) >= 5.5:
            assert SHADES[name].dark == own


def test_two_variants_differ_in_colour_and_shape() -> None:
    found = looks(["docker:runc", "docker:runsc", "local:bwrap", "modal", "e2b"])
    assert found["docker:runc"].role == "docker"
    assert found["docker:runsc"].role in OTHERS
    assert len({look.role for look in found.values()}) == len({look.marker for look in found.values()}) == 5


def test_more_labels_than_colours_still_differ_in_shape() -> None:
    found = looks([f"place{number}" for number in range(9)])
    assert len({look.marker for look in found.values()}) == 9
