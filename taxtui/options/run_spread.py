"""Shares on the command line, and ``--run-sd``: what is assumed between runs, as every command takes it."""

from __future__ import annotations

import math
from typing import Any, Final

import click


class _Share(click.ParamType[float]):
    """``7%`` or ``0.07``."""

    name = "share"

    def __init__(self, below: float = 1) -> None:
        """It is less than ``below``; a bare number is always less than 1, so that 10 is never taken for 10 %."""
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


SHARE: Final = _Share()
LIMIT: Final = _Share(below=100)
"""Share of a growth, which may be above 100 %."""
_HELP: Final = "How much runs differ, as 7%; 0: these runs only. Default: measured from 3 runs on, else as shipped."

OPTION: Final = click.Option(["--run-sd"], type=SHARE, metavar="SHARE", help=_HELP)
run_sd_option = click.option("--run-sd", type=SHARE, metavar="SHARE", help=_HELP)
