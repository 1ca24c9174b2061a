from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECOND_DECODER = (
    "costmodel/recording/framing.py",
    "costmodel/recording/events.py",
    "costmodel/recording/validation.py",
)
FIRST_DECODER = ("taxtui/recording/events.py", "taxtui/recording/causality.py")
"""The second one reads the same events, on purpose without sharing a line with taxtui: the names are the format's."""


def test_a_public_class_name_means_one_thing() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(file for package in ("taxtui", "costmodel") for file in (ROOT / package).rglob("*.py")):
        place = str(path.relative_to(ROOT))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and place not in SECOND_DECODER:
                places[node.name].append(place)
    assert len(places) > 200
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_second_decoder_has_no_class_but_events_and_their_frames() -> None:
    second, first = (
        {
            node.name
            for place in places
            for node in ast.parse((ROOT / place).read_text()).body
            if isinstance(node, ast.ClassDef)
        }
        for places in (SECOND_DECODER, FIRST_DECODER)
    )
    assert second - first == {"Frames"}
