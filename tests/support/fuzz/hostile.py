"""Damaged recordings: any value or byte may differ, and every checksum is right."""

from __future__ import annotations

import contextlib
import copy
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from costmodel.recording import framing
from costmodel.recording.events import Cell, Event, Header, Notice, TrialEnded

GOLDEN: Final = Path(__file__).parents[2] / "taxtui" / "recording" / "golden.msgpack"
MAX_INT: Final = 2**63 - 1
INTEGERS: Final = (-2, -1, 0, 1, 3, 10**18, 2**62, MAX_INT, MAX_INT + 1, 2**64 - 1)
MARKUP: Final = ("[red]x", "[/]", "[@click=app.quit]x[/]", "\\[b]")
WIDE: Final = "漢" * 100
TEXTS: Final = (
    *("", "[", "[/]", "[red]", "\\[", "\x1b[31m", "\x1b]52;c;aGk=\x07", "\x9b2J", "two\nlines\r", "\u202e", WIDE),
    *("a\u200bb\u200d\ufeff", "\u0627\u0644\u0639\u0631\u2067x\u2066", "[@click=app.quit]x[/]", "=HYPERLINK(1)"),
    *("<script>alert(1)</script>", "| a | `b` ![](x)", "e\u0301" * 50, "x" * 300, "action", "setup", "failed"),
    "lognormal:8s,0.6",
)
COLUMNS: Final[tuple[list[int], ...]] = ([], [0], [-1], [MAX_INT], [MAX_INT] * 3)
SPLICES: Final = (b"", b"\xff", b"\xc1", b"\xc0", b"\xcf" + b"\xff" * 8, b"\xcb\x7f\xf8" + bytes(6), b"\x91" * 2_000)
LINK: Final = b"\x93\x0b"  # the first bytes of a link
names = st.one_of(st.sampled_from(TEXTS), st.text(max_size=40))


def payloads(data: bytes | None = None) -> list[bytes]:
    """The payloads of a recording, by default of the golden recording."""
    return [payload for _, payload in framing.FrameParser().feed(GOLDEN.read_bytes() if data is None else data)]


def sealed(contents: list[bytes]) -> bytes:
    """A file of these payloads with right checksums, and right links in readable payloads."""
    data = b""
    before = 0
    for number, payload in enumerate(contents):
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            raws = msgspec.msgpack.decode(payload, type=list[msgspec.Raw])
            if raws and bytes(raws[0]).startswith(LINK):
                payload = msgspec.msgpack.encode([[11, number, before], *raws[1:]])
        data += framing.frame(payload)
        before = zlib.crc32(payload)
    return data


def renamed(event: Event, first: str, second: str) -> Event:
    """The event with these texts in place of names."""
    match event:
        case Header():
            return msgspec.structs.replace(
                event, run_id=first, scenario={**event.scenario, "name": second}, software={first: second}
            )
        case Cell():
            return msgspec.structs.replace(
                event,
                substrate=first,
                variant=f"{event.id}{second}",
                tier=second,
                mode=first,
                arrival=second,
                environment=first,
            )
        case Notice():
            return msgspec.structs.replace(event, level=first, text=second)
        case TrialEnded() if event.outcome != "ok":
            return msgspec.structs.replace(event, phase=first, error=second, message=first)
        case _:
            return event


def recording(source: Random) -> bytes:
    """The golden recording with a few values or bytes changed."""
    contents = payloads()
    if source.random() < 0.5:
        batches = [msgspec.msgpack.decode(payload) for payload in contents]
        damage(batches, source, _replacement)
        return sealed([msgspec.msgpack.encode(batch) for batch in batches])
    number = source.randrange(len(contents))
    payload = contents[number]
    for _ in range(source.randint(1, 3)):
        at, removed = source.randrange(len(payload)), source.randint(0, 3)
        new = source.choice((*SPLICES, source.randbytes(source.randint(1, 4))))
        payload = payload[:at] + new + payload[at + removed :] or b"\x90"
    contents[number] = payload
    return sealed(contents)


def _replacement(value: Any, source: Random) -> Any:
    if isinstance(value, list):
        return source.choice(COLUMNS)
    return source.choice(INTEGERS if isinstance(value, int) else TEXTS)


def damage(value: Any, source: Random, replacement: Callable[[Any, Random], Any]) -> None:
    """Remove, double, exchange or replace up to five parts of a value."""
    for _ in range(source.randint(1, 5)):
        if not (found := places(value)):
            return
        (holder, key), what = source.choice(found), source.random()
        if what < 0.15:
            del holder[key]
        elif what < 0.25:
            if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            else:
                holder["another"] = copy.deepcopy(holder[key])
        elif what < 0.35:
            other = source.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            holder[key], holder[other] = holder[other], holder[key]
        else:
            holder[key] = copy.deepcopy(replacement(holder[key], source))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place below a value, as the container and the key."""
    pairs: list[tuple[Any, Any]] = []
    for key, child in list(value.items() if isinstance(value, dict) else enumerate(value)):
        pairs.append((value, key))
        if isinstance(child, dict | list):
            pairs += places(child)
    return pairs


recordings = st.integers(0, 1 << 64).map(lambda seed: recording(Random(seed)))
