"""The worked example in docs/: what its lines of Python print, written as they print it today.

``make screenshots`` runs it after the numbers have moved; a test says where they have. What the prose says of a number
is left to people.
"""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path("docs/worked-example.md")


class _Printed(doctest.DocTestRunner):
    """Keeps what each example printed, whether it was expected or not."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.got: dict[int, str] = {}

    def report_success(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        self.got[example.lineno] = got

    def report_failure(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        self.got[example.lineno] = got


def redrawn(text: str) -> str:
    """The page with the outputs of today."""
    test = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, str(PAGE), str(PAGE), 0)
    runner = _Printed()
    runner.run(test, out=lambda _: None)
    lines = text.splitlines(keepends=True)
    for example in reversed(test.examples):
        begin = example.lineno + example.source.count("\n")
        lines[begin : begin + example.want.count("\n")] = [runner.got[example.lineno]]
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(redrawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
