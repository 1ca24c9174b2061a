"""Counts on the command line: ``500``, ``10k``, ``1e6``."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from taxtui.errors import UsageError


class _Count(click.ParamType[int]):
    """As ``parse_count`` has it."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """A whole number; the command refuses a negative number with its own limit."""
        from taxtui.plan.notation import parse_count

        if isinstance(value, int) or re.fullmatch("-[0-9]{1,18}", str(value)):
            return int(value)
        try:
            return parse_count(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


COUNT: Final = _Count()
