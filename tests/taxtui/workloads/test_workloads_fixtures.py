"""The cache and the repository of the fixtures, from a small source distribution of the test's own: no network.

And the programs that make them: which line of their errors is shown.
"""

import io
import os
import subprocess
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from taxtui.errors import TaxtuiError
from taxtui.workloads import fixtures
from taxtui.workloads.programs import run_program

FILES = {
    "README.md": (b"caf\xc3\xa9\r\nline two\n", 0o644),
    "src/pkg/__init__.py": (b"", 0o644),
    "run me.sh": (b"#!/bin/sh\n", 0o755),
    ".gitignore": (b"*.md\n", 0o644),
    ".gitattributes": (b"* text=auto eol=crlf\n", 0o644),
}


def git(*arguments: str, cwd: Path, **env: str) -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **env}
    return subprocess.run(
        ["git", *arguments], cwd=cwd, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def sdist(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, (content, mode) in {**FILES, "PKG-INFO": (b"Name: attrs\n", 0o644)}.items():
            member = tarfile.TarInfo(f"attrs-25.4.0/{name}")
            member.size, member.mode, member.mtime = len(content), mode, 1_600_000_000
            archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A cache of the test's own, a download that needs no network, and the ids that git gives to those files."""
    plain = tmp_path / "plain"
    git("init", "--quiet", str(plain), cwd=tmp_path)
    for name, (content, mode) in FILES.items():
        (plain / name).parent.mkdir(parents=True, exist_ok=True)
        (plain / name).write_bytes(content)
        blob = git("hash-object", "-w", "--no-filters", name, cwd=plain)
        git("update-index", "--add", "--cacheinfo", f"100{mode:o},{blob},{name}", cwd=plain)
    tree = git("write-tree", cwd=plain)
    who = {"NAME": "taxtui", "EMAIL": "taxtui@localhost", "DATE": "1759708800 +0000"}
    env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    commit = git("commit-tree", tree, "-m", "attrs 25.4.0, as in its source distribution", cwd=plain, **env)
    seen: list[Path] = []

    def download(into: Path) -> None:
        seen.append(into)
        into.mkdir()
        sdist(into / "attrs-25.4.0.tar.gz")
        (into / "thing-1-py3-none-any.whl").write_bytes(b"a wheel")

    monkeypatch.setattr(fixtures, "TREE", tree)
    monkeypatch.setattr(fixtures, "COMMIT", commit)
    monkeypatch.setattr(fixtures, "_download", download)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return seen


def test_the_commit_is_byte_for_byte_what_git_itself_makes_of_the_files(
    downloads: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))  # as a git hook that runs us would
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    folder = fixtures.ensure()  # refuses any other commit or tree
    assert (
        git("log", "--format=%s", "25.4.0", cwd=folder / "attrs.git") == "attrs 25.4.0, as in its source distribution"
    )


def test_other_files_than_expected_are_refused(downloads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixtures, "TREE", "1" * 40)
    with pytest.raises(TaxtuiError, match=f"not .* with {'1' * 40}"):
        fixtures.ensure()
    assert fixtures.cached() is None


def test_what_is_cached_is_not_built_again_and_any_user_of_a_sandbox_can_read_it(downloads: list[Path]) -> None:
    assert fixtures.cached() is None
    before = os.umask(0o077)
    try:
        folder = fixtures.ensure()
    finally:
        os.umask(before)
    assert fixtures.ensure() == fixtures.cached() == folder
    assert len(downloads) == 1
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert {path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]} == {0o755, 0o644}


def test_two_builders_at_once_share_one_folder(downloads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    publish = fixtures._publish

    def together(built: Path, final: Path) -> None:
        both.wait()
        publish(built, final)

    monkeypatch.setattr(fixtures, "_publish", together)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: fixtures.ensure(), range(2))
    assert first == second == fixtures.cached()
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_no_index_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_off = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    for key, value in {"XDG_CACHE_HOME": str(tmp_path), **cut_off}.items():
        monkeypatch.setenv(key, value)
    with pytest.raises(TaxtuiError, match=r"^pip cannot fetch the fixtures: No matching distribution found for .*$"):
        fixtures.ensure()
    assert list((tmp_path / "taxtui").iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("PATH", "", "^git cannot make the repository: there is no git; install it$"),
        ("XDG_CACHE_HOME", "/dev/null", "^cannot build the fixtures in /dev/null/taxtui: Not a directory$"),
    ],
)
def test_no_git_and_no_cache_are_one_clear_line(
    variable: str, value: str, words: str, downloads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(TaxtuiError, match=words):
        fixtures.ensure()


LINES = "error: subprocess-exited-with-error\nfatal: https://user:p@ss@host/x is gone\nERROR: no such wheel"


@pytest.mark.parametrize(
    ("program", "line"), [("git", "error: subprocess-exited-with-error"), ("pip", "no such wheel")]
)
def test_the_reason_is_the_first_error_of_git_and_the_last_line_of_others(
    program: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / program
    script.write_text(f"#!/bin/sh\nprintf '%s' '{LINES}' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(TaxtuiError) as raised:
        run_program([program], "cannot", fix="do so")
    assert str(raised.value) == f"cannot: {line.removeprefix('error: ')}; do so"


def test_user_and_password_of_a_url_are_left_out() -> None:
    with pytest.raises(TaxtuiError, match=r"^cannot clone https://\*\*\*@host/a: at https://\*\*\*@host/b it ended$"):
        run_program(["sh", "-c", "echo at https://u:p@ss@host/b it ended >&2; exit 1"], "cannot clone https://u@host/a")
