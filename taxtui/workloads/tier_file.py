"""Writes a tier as a TOML file for ``plan.scenario.load_tier``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from taxtui.errors import UsageError
from taxtui.plan.spec import Step, Tier

_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def to_toml(tier: Tier, about: Sequence[str] = (), remarks: Mapping[int, str] | None = None) -> str:
    """Return the file's text: comment lines, tier and steps. ``remarks``: comments by the number of a cycle's step.

    Half a surrogate pair, invalid in TOML and shells, becomes U+FFFD.
    """
    lines = [f"# {_one_line(line)}" for line in about]
    lines += [f"name = {_text(tier.name)}", f"title = {_text(tier.title)}"]
    lines.append(f"requires = [{', '.join(map(_text, tier.requires))}]")
    lines += ["network = true"] if tier.network else []
    lines += [f"think = {_text(tier.think)}"] if tier.think else []
    lines += [f"preload = {_text(tier.preload)}"] if tier.preload else []
    for step in tier.setup:
        lines += ["", "[[setup]]", *_step(step)]
    for number, step in enumerate(tier.cycle):
        remark = (remarks or {}).get(number, "")
        lines += ["", *([f"# {_one_line(remark)}"] if remark else []), "[[cycle]]", *_step(step)]
    return "\n".join(lines) + "\n"


def write_new(path: Path, text: str) -> None:
    """Write a new file, readable only for the owner: commands are private.

    Raises:
        UsageError: the file exists, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path} exists", fix="remove the file, or choose another with -o") from error
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _step(step: Step) -> list[str]:
    lines = [f"name = {_text(step.name)}", f"run = {_text(step.run)}"]
    lines += [f"expect_exit = {step.expect_exit}"] if step.expect_exit else []
    lines += [f"expect_stdout = {_text(step.expect_stdout)}"] if step.expect_stdout else []
    lines += [f"timeout_s = {step.timeout_s!r}"] if step.timeout_s is not None else []
    return lines


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]+", " ", text)


def _text(text: str) -> str:
    """Return a TOML string: literal where possible, else with JSON's escapes."""
    text = re.sub(r"[\ud800-\udfff]", "�", text)
    if ("\n" in text or '"' in text or "\\" in text) and not _UNPRINTABLE.search(text):
        if "\n" not in text and "'" not in text:
            return f"'{text}'"
        if "'''" not in text and not text.endswith("'") and "\n" in text:
            return f"'''\n{text}'''"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
