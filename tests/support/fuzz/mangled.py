"""Shipped TOML documents with damaged values, from a seed."""

from __future__ import annotations

import copy
import json
import random
import tomllib
from pathlib import Path
from typing import Any, Final

from tests.support.fuzz import hostile

ROOT: Final = Path(__file__).parents[3]
DOCUMENTS: Final = {
    "scenario": sorted((ROOT / "scenarios").glob("*.toml")),
    "tier": sorted((ROOT / "scenarios" / "tiers").glob("*.toml")),
    "published": sorted((ROOT / "scenarios" / "published").glob("*.toml")),
    "facts": sorted((ROOT / "costmodel" / "providers" / "data" / "published").glob("*.toml")),
    "prices": sorted((ROOT / "costmodel" / "pricing" / "data").glob("*.toml")),
    "profile": sorted((ROOT / "costmodel" / "providers" / "data" / "limits").glob("*.toml")),
}
VALUES: Final[tuple[Any, ...]] = (
    *("", "x", "[red]", "\x1b[31m", "nan", "9999999h", "lognormal:8s,nan", "staggered:0s", "local:x=y", "x" * 2000),
    *(-1, 0, 1, 256, 2**63, -(2**70), 10**400, 1.5, -0.0, 1e308, float("nan"), float("inf"), True),
    *([], [1], ["a"], [[]], [{}], {}, {"a": 1}, list(range(5000))),
)


def document(kind: str, source: random.Random) -> str:
    """A shipped document with one or two values replaced, missing or added."""
    data = tomllib.loads(source.choice(DOCUMENTS[kind]).read_text(encoding="utf-8"))
    for _ in range(source.choice((1, 1, 2))):
        holder, key = source.choice(hostile.places(data))
        what = source.random()
        if what < 0.8:
            holder[key] = copy.deepcopy(source.choice(VALUES))
        elif what < 0.9:
            del holder[key]
        elif isinstance(holder, dict):
            holder["another"] = copy.deepcopy(source.choice(VALUES))
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in data.items())


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(one)}' for key, one in value.items())}}}"
    return str(value)  # numbers and dates, as TOML has them
