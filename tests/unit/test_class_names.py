from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECOND_DECODER = "costmodel/wire.py"
"""Reads the same events as taxtui, on purpose without sharing a line with it: the names are the format's."""


def test_a_public_class_name_means_one_thing() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(file for package in ("taxtui", "costmodel") for file in (ROOT / package).rglob("*.py")):
        place = str(path.relative_to(ROOT))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and place != SECOND_DECODER:
                places[node.name].append(place)
    assert len(places) > 200
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_second_decoder_has_no_class_but_events_and_their_frames() -> None:
    named = {
        place: {node.name for node in ast.parse((ROOT / place).read_text()).body if isinstance(node, ast.ClassDef)}
        for place in (SECOND_DECODER, "taxtui/recording/events.py")
    }
    assert named[SECOND_DECODER] - named["taxtui/recording/events.py"] == {"Frames"}
