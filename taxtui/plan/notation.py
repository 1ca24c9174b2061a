"""Short notations of scenario files and the command line: substrates, think time, lengths and counts."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Final, get_args

from costmodel import RECORDED_LENGTH, Length
from taxtui.errors import UsageError
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.spec import Operation, SubstrateRef, ThinkTime

if TYPE_CHECKING:
    from costmodel import Images

MAX_LENGTHS: Final = 10_000
"""In one range."""

_LENGTH: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?")
_COUNT: Final = re.compile(
    r"([0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]+)(\.[0-9]+)?(?:e\+?([0-9]{1,2}))?([kmgbt]?)", re.IGNORECASE
)
_IMAGES: Final = re.compile(r"(?:([0-9.]+[kM]?):)?([0-9.]+)(?:-([0-9.]+))?(?:GB)?", re.ASCII)
_IMAGES_FIX: Final = "write 500:2-8 (500 images of 2 to 8 GB), 500:4 or 2,4,8"
_LADDER: Final = re.compile(r"(\d{1,6}):(\d{1,6})", re.ASCII)
_POWERS: Final = {"": 0, "k": 3, "m": 6, "g": 9, "b": 9, "t": 12}
MAX_COUNT: Final = 10**18
"""Highest count; a higher count is a typing error."""
MAX_SIGMA: Final = 5.0
"""At this sigma, a lognormal's mean is 270,000 times the median; higher values are typing errors."""


def parse_substrate(text: str) -> SubstrateRef:
    """``docker`` or ``docker:runtime=runsc,image=mine:1``. The registry checks the name.

    Raises:
        UsageError: an option without ``=``.
    """
    name, _, rest = text.partition(":")
    options = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise UsageError(f"{part!r} in {text!r} is not an option", fix="write NAME:key=value,key=value")
        options[key.strip()] = value.strip()
    if not name:
        raise UsageError(f"{text!r} has no substrate name", fix="write NAME or NAME:key=value")
    return SubstrateRef(name=name.strip(), options=options)


def parse_count(text: str) -> int:
    """Return a count: ``500``, ``1,000,000``, ``1_000_000``, ``10k``, ``2.5M``, ``1B``, ``1e6``.

    Raises:
        UsageError: any other text, a fraction, or a count above ``MAX_COUNT``.
    """
    match = _COUNT.fullmatch(text.strip())
    if match is not None:
        digits = Decimal(re.sub("[,_]", "", match[1]) + (match[2] or ""))
        count = digits.scaleb(int(match[3] or 0) + _POWERS[match[4].lower()])
        if count == count.to_integral_value() and count <= MAX_COUNT:
            return int(count)
    raise UsageError(f"{text!r} is no count", fix=f"write 500, 1,000,000, 10k, 2.5M or 1e6, up to {MAX_COUNT:.0e}")


def parse_length(text: str) -> Length | None:
    """Return a number of actions: ``50``, ``20-120`` (equally likely), ``10:3,50:1`` (weights), ``recorded``: None.

    Raises:
        UsageError: anything else, or a length below 1.
    """
    if text.strip() == RECORDED_LENGTH:
        return None
    weights: Counter[int] = Counter()
    for part in text.split(","):
        match = _LENGTH.fullmatch(part.strip())
        low, high, weight = (int(match[1]), int(match[2] or match[1]), int(match[3] or 1)) if match else (0, 0, 0)
        if not 1 <= low <= high < low + MAX_LENGTHS or not weight:
            raise UsageError(
                f"{text!r} is no number of actions",
                fix="write 50, a range as 20-120, weights as 10:3,50:1, or recorded; "
                f"a range holds up to {MAX_LENGTHS:,}",
            )
        for actions in range(low, high + 1):
            weights[actions] += weight
    return Length.weighted(weights)


def parse_images(text: str) -> Images:
    """Sizes in GB: ``500:2-8`` (500, evenly from 2 to 8), ``500:4``, or ``2,4,8`` (these three).

    Raises:
        UsageError: anything else, or a range without a number of images.
        costmodel.errors.TrainingRunError: an impossible size or number of images.
    """
    from costmodel import Images

    sizes: list[float] = []
    for part in text.split(","):
        match = _IMAGES.fullmatch(part.strip())
        try:
            if match is None:
                raise ValueError
            count = None if match[1] is None else parse_count(match[1])
            low, high = float(match[2]), float(match[3] or match[2])
        except ValueError as error:
            raise UsageError(f"{text!r} is no set of images", fix=_IMAGES_FIX) from error
        if count is None and match[3] is not None:
            raise UsageError(f"{text!r} does not say how many images there are", fix=_IMAGES_FIX)
        sizes += Images.between(low, high, 1 if count is None else count).sizes_gb
    return Images.of(sizes)


def parse_ladder(text: str) -> list[int]:
    """Return levels of concurrency: ``1:256`` is 1, 2, 4 … 256, always with the last.

    Raises:
        UsageError: anything else.
    """
    match = _LADDER.fullmatch(text.strip())
    low, high = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 0 < low < high:
        raise UsageError(f"{text!r} is no ladder", fix="write 1:256")
    levels = [low]
    while levels[-1] < high:
        levels.append(min(high, 2 * levels[-1]))
    return levels


def parse_think(text: str) -> ThinkTime:
    """``0s``, ``8s`` or ``lognormal:8s,0.6`` (median, sigma of the logarithm).

    Raises:
        UsageError: anything else.
    """
    if not text.startswith("lognormal:"):
        return ThinkTime(median_ns=parse_duration_ns(text))
    median, comma, sigma = text.removeprefix("lognormal:").partition(",")
    try:
        value = float(sigma)
    except ValueError:
        value = -1.0
    if not comma or not 0 <= value <= MAX_SIGMA:
        raise UsageError(
            f"{text!r} is not a think time",
            fix=f"write lognormal:MEDIAN,SIGMA as in lognormal:8s,0.6, with SIGMA up to {MAX_SIGMA:g}",
        )
    return ThinkTime(median_ns=parse_duration_ns(median), sigma=value)


def parse_lifecycle(text: str) -> tuple[tuple[Operation, ...], int | None]:
    """Operations and the pause before a suspension: ``suspend:5s``, ``snapshot``, ``suspend:5s,snapshot,build``.

    Raises:
        UsageError: another operation, one operation twice, or ``suspend`` without a pause.
    """
    operations: list[Operation] = []
    after_ns = None
    for part in filter(None, text.split(",")):
        name, colon, pause = part.strip().partition(":")
        if name not in get_args(Operation) or name in operations or (name == "suspend") != bool(colon):
            raise UsageError(
                f"{part.strip()!r} in lifecycle is no operation of a sandbox, or is there twice",
                fix="write suspend:5s, snapshot, build, or several with commas",
            )
        after_ns = parse_duration_ns(pause) if colon else after_ns
        operations.append(name)  # type: ignore[arg-type]  # checked above
    return tuple(operations), after_ns
