"""Tiers from a user's repository: inspection, like T1, and tests, like T2.

Both clone from a folder of fixtures: the repository as one bare commit, and git's settings.

The expected output of each step is read from the commit with git, before any run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from taxtui.errors import TaxtuiError, UsageError
from taxtui.plan.spec import Step, Tier
from taxtui.workloads import fixtures
from taxtui.workloads.programs import run_program, without_userinfo

BARE: Final = "repo.git"
"""The bare clone in the fixtures' folder."""
GITCONFIG: Final = "gitconfig"
"""Settings next to the bare clone, for clones by another user than the owner."""

_CLONE: Final = f"""\
GIT_CONFIG_GLOBAL="$TAXTUI_FIXTURES/{GITCONFIG}" git clone --quiet --template= -c advice.detachedHead=false \\
    -c color.ui=false -c core.pager=cat -c core.checkStat=minimal "file://$TAXTUI_FIXTURES/{BARE}" repo &&
    cd repo && git checkout --quiet --detach && git ls-files -z | xargs -0 touch -h -t 202001010000 &&
    git update-index -q --refresh"""
# Git trusts an index newer than the files: else each command within a second of the clone reads all files.

MAX_SHOWN_BYTES: Final = 64_000
"""The largest file printed by a step."""
MIN_LINES: Final = 3
MAX_LINE: Final = 120
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
TEST_TIMEOUT_S: Final = 600.0


class Landmark(NamedTuple):
    """A file of the commit, and a line to search for."""

    path: str
    lines: list[str]
    number: int  # of the line, from 1
    word: str  # a word of the line

    @property
    def line(self) -> str:
        return self.lines[self.number - 1]


class RepositoryCopy:
    """The cloned commit, the source of tiers. Read with git; nothing of the repository is run."""

    def __init__(self, bare: Path) -> None:
        """``bare``: from ``clone``. Raises ``TaxtuiError``: git cannot read the repository."""
        self._git = ["git", "-c", "safe.directory=*", f"--git-dir={bare}"]
        self.tree = self._read("rev-parse", "HEAD^{tree}").strip()

    def _read(self, *arguments: str) -> str:
        return _run([*self._git, *arguments], "git cannot read the repository").decode(errors="surrogateescape")

    def text(self, path: str) -> str:
        """Return a file's content; "" for a large file, and for any text not in UTF-8."""
        if int(self._read("cat-file", "-s", f"HEAD:{path}")) > MAX_SHOWN_BYTES:
            return ""
        content = _run([*self._git, "cat-file", "blob", f"HEAD:{path}"], "git cannot read the repository")
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode()
        return ""

    def landmark(self) -> Landmark:
        """Return the longest of the first hundred files with a line to search for.

        Raises:
            UsageError: no such file.
        """
        entries = [line.partition("\t") for line in self._read("ls-tree", "-r", "-z", "HEAD").split("\0")]
        plain = [path for kind, _, path in entries if kind.startswith("100") and _PLAIN.fullmatch(path)]
        sources = [path for path in plain if Path(path).suffix in _SOURCES] or plain
        landmarks = [landmark for path in sources[:100] if (landmark := _distinct(path, self.text(path)))]
        if not landmarks:
            raise UsageError("the repository has no text file to read", fix="write the tier by hand: docs/own-work.md")
        return max(landmarks, key=lambda landmark: len(landmark.lines))


# fmt: off
_PLAIN: Final = re.compile(r"[\w+@][\w./+@-]*", re.ASCII)
"""A path without quoting in a shell or git."""
_SOURCES: Final = {
    ".py", ".go", ".rs", ".js", ".ts", ".tsx", ".c", ".h", ".cc", ".cpp", ".java", ".rb", ".kt", ".swift", ".sh",
}
# fmt: on


def clone(source: str, folder: Path) -> RepositoryCopy:
    """Clone the last commit at a path or URL into ``folder``, without history.

    Raises:
        UsageError: git cannot clone the repository, or the repository is empty.
        TaxtuiError: there is no git.
    """
    url = f"file://{Path(source).resolve()}" if Path(source).exists() else source
    if url.startswith("-"):
        raise UsageError(f"{source!r} is neither a path nor a URL")
    bare = folder / BARE
    command = ["git", "clone", "--quiet", "--bare", "--depth", "1", "--single-branch", "--no-tags", "--template=", "--"]
    _run([*command, url, str(bare)], f"git cannot clone {source}", UsageError)
    _run(["git", f"--git-dir={bare}", "remote", "remove", "origin"], "git cannot remove the clone's origin")
    shutil.copyfile(fixtures.DATA / GITCONFIG, folder / GITCONFIG)
    try:
        snapshot = RepositoryCopy(bare)
    except TaxtuiError as error:
        raise UsageError(f"{without_userinfo(source)} has no commit", fix="commit something first") from error
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # also with a strict umask: sandboxes have other users
    return snapshot


def inspection(name: str, snapshot: RepositoryCopy) -> Tier:
    """Return a tier of ten reading steps after a clone, like an agent's orientation."""
    return Tier(
        name=f"{name}-inspect",
        title=f"{name}, inspected",
        requires=("bash", "git"),
        preload=f"test -d repo/.git || {{\n{_CLONE}\n}}\n",
        cycle=(*_reading(snapshot), _NOTHING_CHANGED),
    )


def testing(name: str, snapshot: RepositoryCopy, test: str, setup: Sequence[str], *, network: bool) -> Tier:
    """Return a tier from a clone to a passing test, then a cycle of reading, an edit, the tests, and the edit undone.

    ``test``: the command for the tests. ``setup``: commands between the clone and the first test.
    """
    landmark = snapshot.landmark()
    file = shlex.quote(landmark.path)
    run = Step(name="test", run=f"cd repo && {test}", timeout_s=TEST_TIMEOUT_S)
    steps = [Step(name="clone", run=f"{_CLONE} &&\n    git rev-parse 'HEAD^{{tree}}'\n", expect_stdout=snapshot.tree)]
    for number, command in enumerate(setup, 1):
        steps.append(Step(name=f"set up {number}", run=f"cd repo && {command}", timeout_s=TEST_TIMEOUT_S))
    reading = {step.name: step for step in _reading(snapshot)}
    edit = f'cd repo && printf "%s\\n" "$TAXTUI_NONCE" >> {file} && git diff -- {file}'
    restore = f"cd repo && git checkout --quiet -- {file} && git diff --exit-code && echo restored"
    return Tier(
        name=f"{name}-test",
        title=f"{name}, tested",
        requires=("bash", "git"),
        network=network,
        setup=(*steps, run),
        cycle=(
            *(reading[step] for step in ("ls", "cat", "grep", "sed", "find", "wc")),
            run,
            Step(name="edit", run=edit, expect_stdout="+{nonce}"),
            Step(name="git status", run="cd repo && git status --porcelain", expect_stdout=f" M {landmark.path}"),
            Step(name="restore", run=restore, expect_stdout="restored"),
        ),
    )


_NOTHING_CHANGED: Final = Step(
    name="git diff", run="cd repo && git diff --exit-code HEAD && echo unchanged", expect_stdout="unchanged"
)


def _reading(snapshot: RepositoryCopy) -> list[Step]:
    landmark = snapshot.landmark()
    file, folder = shlex.quote(landmark.path), str(Path(landmark.path).parent)
    word, number = shlex.quote(landmark.word), landmark.number
    cut = f"{max(1, number - 10)},{number + 10}"
    return [
        Step(name="ls", run='cd repo && ls -A && echo "$TAXTUI_NONCE"', expect_stdout="\n{nonce}"),
        Step(name="cat", run=f"cd repo && cat {file}", expect_stdout=landmark.line),
        Step(name="git log", run="cd repo && git log -1 --format='tree %T'", expect_stdout=f"tree {snapshot.tree}"),
        Step(
            name="grep",
            run=f"cd repo && grep -rnF -e {word} {shlex.quote(folder)}",
            expect_stdout=f"{'./' if folder == '.' else ''}{landmark.path}:{number}:{landmark.line}",
        ),
        Step(name="sed", run=f"cd repo && sed -n '{cut}p' {file}", expect_stdout=landmark.line),
        Step(
            name="find",
            run=f"cd repo && find . -path ./.git -prune -o -name {shlex.quote(Path(landmark.path).name)} -print",
            expect_stdout=f"./{landmark.path}",
        ),
        Step(name="wc", run=f"cd repo && wc -l {file}", expect_stdout=f" {landmark.path}"),
        Step(name="git status", run="cd repo && git status --porcelain --branch", expect_stdout="## HEAD (no branch)"),
        Step(name="git show", run=f"cd repo && git show HEAD:{file}", expect_stdout=landmark.line),
    ]  # fmt: skip


def _distinct(path: str, text: str) -> Landmark | None:
    """Return a unique line near the middle of a text."""
    lines = text.splitlines() if "\r" not in text and "{nonce}" not in text else []
    middle = len(lines) / 2
    for number in sorted(range(1, len(lines) + 1), key=lambda place: abs(place - middle)):
        line = lines[number - 1]
        words = re.findall(r"[A-Za-z_]\w{4,}", line)
        plain = line.isprintable() and line.isascii() and line == line.strip("-")
        if words and len(line) <= MAX_LINE and plain and lines.count(line) == 1:
            return Landmark(path, lines, number, max(words, key=len)) if len(lines) >= MIN_LINES else None
    return None


def _run(command: list[str], failure: str, kind: type[TaxtuiError] = TaxtuiError) -> bytes:
    """Run git outside any current repository."""
    env = {key: value for key, value in os.environ.items() if key not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    return run_program(command, failure, kind, env=env | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"})


def to_toml(tier: Tier, comment: str) -> str:
    """Return the file's text: a line of comment, tier and steps.

    Half a surrogate pair, invalid in TOML and shells, becomes U+FFFD.
    """
    lines = [f"# {comment}", *_fields(tier)]
    for table, steps in (("setup", tier.setup), ("cycle", tier.cycle)):
        for step in steps:
            lines += ["", f"[[{table}]]", *_fields(step)]
    return "\n".join(lines) + "\n"


def _fields(part: Tier | Step) -> list[str]:
    """Return a line for each field that differs from the default, except steps."""
    return [
        f"{field.name} = {_value(value)}"
        for field in msgspec.structs.fields(part)
        if field.name not in ("setup", "cycle") and (value := getattr(part, field.name)) != field.default
    ]


def _value(value: object) -> str:
    """Return a TOML value: a text of several lines as it is where possible, else with JSON's escapes."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    text = re.sub(r"[\ud800-\udfff]", "�", value)
    if "\n" in text and "'''" not in text and not text.endswith("'") and not _UNPRINTABLE.search(text):
        return f"'''\n{text}'''"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
