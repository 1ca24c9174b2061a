"""Whether an agent's command can be run again, and the needed network and folders."""

from __future__ import annotations

import re
import shlex
from typing import Final

# fmt: off
_INTERACTIVE: Final = {
    "vi", "vim", "nvim", "nano", "emacs", "pico", "ed", "less", "more", "man", "top", "htop", "btop", "watch", "screen",
    "tmux", "ssh", "telnet", "ftp", "sftp", "psql", "mysql", "gdb", "pdb", "passwd", "su", "visudo",
}
"""Interactive programs."""
_BATCH_FLAGS: Final = {"-c", "-e", "-f", "-n", "-b", "-q", "-batch", "--batch", "--command", "--version"}
_REPLS: Final = {"python", "python3", "ipython", "node", "irb", "ghci", "lua", "R", "julia", "bash", "sh", "sqlite3"}
_AGENT_TOOLS: Final = {
    "submit", "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "search_dir", "search_file",
    "find_file", "str_replace_editor", "edit_anthropic", "review_on_submit_m", "filemap", "view_image",
}
"""Commands installed by SWE-agent, missing in a fresh sandbox."""
_COMMIT_MESSAGE: Final = re.compile(r"-[a-zA-Z]*[mFC]|--(message|file|no-edit|fixup|reuse-message)")
# fmt: on
_HARNESS_PATHS: Final = re.compile(
    r"(?<![\w.])(?:/(?:installed-agent|logs/(?:agent|verifier)|swe_util|swe-agent|root/(?:tools|state\.json|model\.patch)"
    r"|opt/(?:inspect|openhands)[\w-]*)|/(?:home|Users)/[^/\s'\";|&]+/|[A-Z]:\\)"
)
"""Folders of harnesses, and home folders."""
_SYSTEM: Final = ("/bin", "/dev", "/etc", "/lib", "/proc", "/sbin", "/sys", "/tmp", "/usr", "/var", "/opt/taxtui")
_ABSOLUTE: Final = re.compile(r"(?:(?<=[\s='\"(<>])|^)/[A-Za-z_][\w.+-]*")
_NETWORK: Final = re.compile(
    r"\b(?:pip3?|uv|uv pip|npm|pnpm|yarn|cargo|gem|go|conda|mamba|apt|apt-get|apk|dnf|yum|brew)\s+(?:-\S+\s+)*"
    r"(?:install|add|get|update|ci|fetch|download|sync|create)\b"
    r"|\b(?:curl|wget|rsync|scp)\s|\bgit\s+(?:clone|fetch|pull|push|ls-remote)\b|\bnpx\s"
)


def hindrance(script: str) -> str:
    """Return why a command cannot be run again, as the end of a sentence; "" without a reason.

    Judged by the first word of each part of a pipeline or list; scripts are not read.
    """
    if not script.strip():
        return "is empty"
    if "\0" in script:
        return "has a zero byte"
    if path := _HARNESS_PATHS.search(script):
        owner = "a person's home" if re.match(r"/(?:home|Users)/|[A-Z]:", path[0]) else "the harness's own files"
        return f"uses {owner}"
    for words in _parts(script):
        program = words[0].rpartition("/")[2]
        if program in _AGENT_TOOLS:
            return f"is a tool of the harness ({program})"
        if program in _INTERACTIVE and not _BATCH_FLAGS & set(words[1:]):
            return f"waits for a person ({program})"
        if program in _REPLS and len(words) == 1 and "<<" not in script and "|" not in script and "<" not in script:
            return f"waits for a person ({program})"
        if words[:2] == ["git", "rebase"] and {"-i", "--interactive"} & set(words):
            return "waits for a person (git rebase -i)"
        if words[:2] == ["git", "commit"] and not any(map(_COMMIT_MESSAGE.match, words)):
            return "waits for a person (git commit without a message)"
    return ""


def needs_network(script: str) -> bool:
    """Whether a command fetches something, judged by the words."""
    return bool(_NETWORK.search(script))


def folders_needed(script: str) -> list[str]:
    """Return the needed folders of the image: first parts of absolute paths, without system folders."""
    paths = (path for path in _ABSOLUTE.findall(script))
    return list(dict.fromkeys(path for path in paths if not path.startswith(_SYSTEM)))


def _parts(script: str) -> list[list[str]]:
    """Return the words of each part, without assignments and ``sudo`` in front; [] for a syntax error."""
    body = re.split(r"<<-?\s*['\"]?\w+", script)[0]  # a heredoc has no commands
    lexer = shlex.shlex(body, posix=True, punctuation_chars=";|&()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    parts: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word and set(word) <= set(";|&()\n"):
                parts.append([])
            elif parts[-1] or not re.match(r"\w+=|sudo$|exec$|time$|env$", word):
                parts[-1].append(word)
    except ValueError:
        return []
    return [part for part in parts if part]
