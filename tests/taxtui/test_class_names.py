from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_public_class_name_means_one_thing() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(file for package in ("taxtui", "costmodel") for file in (ROOT / package).rglob("*.py")):
        place = str(path.relative_to(ROOT))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(place)
    assert len(places) > 200
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
