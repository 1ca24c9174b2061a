"""Counts and shares on the command line, and ``--run-sd``."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import click

from taxtui.errors import UsageError


class _Count(click.ParamType[int]):
    """A count, as for ``parse_count``: ``500``, ``10k``, ``1e6``."""

    name = "count"

    def __init__(self, minimum: int | None = None) -> None:
        self._minimum = minimum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return a whole number. Without a minimum the command checks the number itself."""
        from taxtui.plan.notation import parse_count

        text = str(value)
        try:
            count = int(text) if re.fullmatch("-[0-9]{1,18}", text) else parse_count(text)
        except UsageError as error:
            several = param is not None and param.multiple and "," in text
            repeat = " ".join(f"{param.opts[0]} {part}" for part in text.split(",")) if several and param else ""
            self.fail(f"{error.problem}; several counts: {repeat}" if repeat else str(error), param, ctx)
        if self._minimum is not None and count < self._minimum:
            limit = "above 0" if self._minimum == 1 else f"{self._minimum} or more"
            self.fail(f"must be {limit}, not {count}", param, ctx)
        return count


class _Share(click.ParamType[float]):
    """A share: ``7%`` or ``0.07``."""

    name = "share"

    def __init__(self, below: float = 1) -> None:
        """The share is less than ``below``. A number without % is less than 1, so 10 never means 10 %."""
        self._below = below

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = math.nan
        if not 0 <= share < (self._below if text.endswith("%") else 1):
            self.fail(f"{text!r} is no share from 0 up to {self._below:g}; write 7% or 0.07", param, ctx)
        return share


COUNT: Final = _Count()
COUNT_OR_ZERO: Final = _Count(minimum=0)
POSITIVE_COUNT: Final = _Count(minimum=1)
SHARE: Final = _Share()
GROWTH: Final = _Share(below=100)
"""Share of a growth, above 100 % too."""

_RUN_SD: Final[dict[str, Any]] = {
    "type": SHARE,
    "metavar": "SHARE",
    "help": "Standard deviation between repetitions, as 7%; 0: these only. Default: measured from 3 on, or shipped.",
}
RUN_SD: Final = click.Option(["--run-sd"], **_RUN_SD)
run_sd_option = click.option("--run-sd", **_RUN_SD)
