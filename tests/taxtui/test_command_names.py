"""The commands: which there are, and which took the place of an old one."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from taxtui.cli import FIRST, MORE, RENAMED, app
from taxtui.errors import UsageError


def test_the_help_lists_the_commands_of_the_three_jobs_first() -> None:
    assert list(FIRST) == ["run", "report", "project", "decide", "compare", "import", "doctor", "clean"]
    lines = CliRunner().invoke(app, ["--help"]).output.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line[2].islower()]
    assert [name for name in listed if name in FIRST or name in MORE] == [*FIRST, *MORE]
    assert lines.index("Commands:") < lines.index("More:")


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_an_old_name_is_one_line_with_the_new_one(old: str) -> None:
    with pytest.raises(UsageError) as caught:
        CliRunner().invoke(app, [old], catch_exceptions=False)
    assert str(caught.value) == f"there is no command {old!r} any more; taxtui {RENAMED[old]}"
    assert RENAMED[old].split()[0] in FIRST | MORE
