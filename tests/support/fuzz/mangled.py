"""Files that an enemy has written, from a seed: TOML of any shape, and recordings of any bytes with right checksums."""

from __future__ import annotations

import copy
import json
import random
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

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
    """A shipped document with a value or two that are others, missing or too many."""
    data = tomllib.loads(source.choice(DOCUMENTS[kind]).read_text(encoding="utf-8"))
    for _ in range(source.choice((1, 1, 2))):
        holder, key = source.choice(places(data))
        what = source.random()
        if what < 0.8:
            holder[key] = copy.deepcopy(source.choice(VALUES))
        elif what < 0.9:
            del holder[key]
        elif isinstance(holder, dict):
            holder["another"] = copy.deepcopy(source.choice(VALUES))
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in data.items())


def recording(source: random.Random) -> bytes:
    """The golden recording with a few values or bytes of it changed."""
    contents = hostile.payloads()
    if source.random() < 0.5:
        batches = [msgspec.msgpack.decode(payload) for payload in contents]
        for _ in range(source.randint(1, 5)):
            holder, key = source.choice(places(batches))
            value = holder[key]
            others = hostile.INTEGERS if isinstance(value, int) else hostile.TEXTS
            holder[key] = source.choice(others) if not isinstance(value, list) else list(source.choice(hostile.COLUMNS))
        return hostile.sealed([msgspec.msgpack.encode(batch) for batch in batches])
    number = source.randrange(len(contents))
    payload = contents[number]
    for _ in range(source.randint(1, 3)):
        at, gone = source.randrange(len(payload)), source.randint(0, 3)
        new = source.choice((*hostile.SPLICES, source.randbytes(source.randint(1, 4))))
        payload = payload[:at] + new + payload[at + gone :] or b"\x90"
    contents[number] = payload
    return hostile.sealed(contents)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place below a value, as what holds it and the key there."""
    found = []
    for key, one in list(value.items() if isinstance(value, dict) else enumerate(value)):
        found.append((value, key))
        if isinstance(one, dict | list):
            found += places(one)
    return found


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
