"""Writes a tier as a TOML file for ``plan.scenario.load_tier``."""

from __future__ import annotations

import json
import re
from typing import Final

from taxtui.plan.spec import Step, Tier

_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def to_toml(tier: Tier, comment: str) -> str:
    """Return the file's text: a line of comment, tier and steps.

    Half a surrogate pair, invalid in TOML and shells, becomes U+FFFD.
    """
    lines = [f"# {comment}", f"name = {_text(tier.name)}", f"title = {_text(tier.title)}"]
    lines.append(f"requires = [{', '.join(map(_text, tier.requires))}]")
    lines += ["network = true"] if tier.network else []
    lines += [f"preload = {_text(tier.preload)}"] if tier.preload else []
    for table, steps in (("setup", tier.setup), ("cycle", tier.cycle)):
        for step in steps:
            lines += ["", f"[[{table}]]", *_step(step)]
    return "\n".join(lines) + "\n"


def _step(step: Step) -> list[str]:
    lines = [f"name = {_text(step.name)}", f"run = {_text(step.run)}"]
    lines += [f"expect_stdout = {_text(step.expect_stdout)}"] if step.expect_stdout else []
    lines += [f"timeout_s = {step.timeout_s!r}"] if step.timeout_s is not None else []
    return lines


def _text(text: str) -> str:
    """Return a TOML string: literal where possible, else with JSON's escapes."""
    text = re.sub(r"[\ud800-\udfff]", "�", text)
    if ("\n" in text or '"' in text or "\\" in text) and not _UNPRINTABLE.search(text):
        if "\n" not in text and "'" not in text:
            return f"'{text}'"
        if "'''" not in text and not text.endswith("'") and "\n" in text:
            return f"'''\n{text}'''"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
