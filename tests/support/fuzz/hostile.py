"""Recordings that an enemy has written: any value anywhere, any byte changed, and every checksum right."""

from __future__ import annotations

import contextlib
import copy
import zlib
from collections.abc import Iterator
from pathlib import Path
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
    "",
    "[",
    "[/]",
    "[red]",
    "\\[",
    "\x1b[31m",
    "\x1b]52;c;aGk=\x07",
    "\x9b2J",
    "two\nlines\r",
    "\u202e",
    WIDE,
    "a\u200bb\u200d\ufeff",
    "\u0627\u0644\u0639\u0631\u2067x\u2066",
    "[@click=app.quit]x[/]",
    "=HYPERLINK(1)",
    "<script>alert(1)</script>",
    "| a | `b` ![](x)",
    "e\u0301" * 50,
    "x" * 300,
    "action",
    "setup",
    "failed",
    "lognormal:8s,0.6",
)
COLUMNS: Final[tuple[list[int], ...]] = ([], [0], [-1], [MAX_INT], [MAX_INT] * 3)
SPLICES: Final = (b"", b"\xff", b"\xc1", b"\xc0", b"\xcf" + b"\xff" * 8, b"\xcb\x7f\xf8" + bytes(6), b"\x91" * 2_000)
LINK: Final = b"\x93\x0b"  # how one begins
names = st.one_of(st.sampled_from(TEXTS), st.text(max_size=40))


def payloads(data: bytes | None = None) -> list[bytes]:
    """Those of a recording, one per frame; of the golden one where none is given."""
    return [payload for _, payload in framing.FrameParser().feed(GOLDEN.read_bytes() if data is None else data)]


def sealed(contents: list[bytes]) -> bytes:
    """A file of these payloads, each behind a checksum that is right, and links that are where they can be read."""
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


def renamed(event: Event, one: str, other: str) -> Event:
    """The event with these texts wherever a file has words of its own."""
    match event:
        case Header():
            return msgspec.structs.replace(
                event, run_id=one, scenario={**event.scenario, "name": other}, software={one: other}
            )
        case Cell():
            return msgspec.structs.replace(
                event, substrate=one, variant=f"{event.id}{other}", tier=other, mode=one, arrival=other, environment=one
            )
        case Notice():
            return msgspec.structs.replace(event, level=one, text=other)
        case TrialEnded() if event.outcome != "ok":
            return msgspec.structs.replace(event, phase=one, error=other, message=one)
        case _:
            return event


@st.composite
def with_other_values(draw: st.DrawFn) -> bytes:
    """The golden recording with a few values replaced, dropped or doubled."""
    batches = [msgspec.msgpack.decode(payload) for payload in payloads()]
    for _ in range(draw(st.integers(1, 5))):
        holder, key = draw(st.sampled_from(list(_places(batches))))
        value = holder[key]
        what = draw(st.sampled_from(("replace", "replace", "replace", "drop", "double")))
        if what == "drop":
            del holder[key]
        elif what == "double" and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(value))
        elif isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, int):
            holder[key] = draw(st.sampled_from(INTEGERS))
        elif isinstance(value, str):
            holder[key] = draw(names)
        elif isinstance(value, list):
            holder[key] = list(draw(st.sampled_from(COLUMNS)))
    return sealed([msgspec.msgpack.encode(batch) for batch in batches])


@st.composite
def with_other_bytes(draw: st.DrawFn) -> bytes:
    """The golden recording with a few bytes of one payload replaced by others."""
    contents = payloads()
    number = draw(st.integers(0, len(contents) - 1))
    payload = contents[number]
    for _ in range(draw(st.integers(1, 3))):
        at, gone = draw(st.integers(0, len(payload) - 1)), draw(st.integers(0, 3))
        new = draw(st.one_of(st.sampled_from(SPLICES), st.binary(min_size=1, max_size=4)))
        payload = payload[:at] + new + payload[at + gone :] or b"\x90"
    contents[number] = payload
    return sealed(contents)


recordings = st.one_of(with_other_values(), with_other_bytes())


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place below ``value``, as what holds it and the key there; batches themselves are left alone."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        if not (isinstance(one, list) and one and isinstance(one[0], list)):
            yield value, key
        if isinstance(one, list | dict):
            yield from _places(one)
