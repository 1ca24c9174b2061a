"""Programs on the host, for any POSIX shell with the usual tools, and the parsers of their output.

A sandbox is a folder with ``work``, ``home`` and ``tmp``, and a record with the labels and the creation by the host's
clock. Every process of the sandbox has a variable with the sandbox's name, and so has the process for the removal at
the deadline.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.kill import kill_script
from taxtui.sandboxes.kit.labels import LABEL_RUN, found
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.protocol import Found

NOT_PRIVATE: Final = 3
EXISTS: Final = 4
"""Exit codes of ``make``, besides 0 and codes of failed programs inside."""
NEEDED: Final = (
    *("bash", "env", "grep", "sed", "ls", "head", "cat", "tr", "id", "date", "uname"),
    *("mkdir", "rm", "chmod", "sleep"),
)
FOLDER: Final = re.compile(r"/[A-Za-z0-9/._-]*[A-Za-z0-9]")
"""Text without quotes in any shell, and without a special meaning for sed."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_RECORD_MAX_BYTES: Final = 16_384

_LOOK: Final = (
    "echo taxtui; uname -sr; "
    '[ -d /proc/self ] || printf "/proc "; [ -z "$2" ] || [ -d "$2/attrs.git" ] || printf "%s/attrs.git" "$2"; echo; '
    'b=${1:-/tmp/taxtui-ssh-$(id -u)}; p=${b%/*}; p=$(cd "${p:-/}" 2>/dev/null && pwd -P) && echo "${p%/}/${b##*/}" '
    '|| echo; IFS=:; for d in $PATH; do ls "$d" 2>/dev/null; done; true'
)
_MAKE: Final = (
    'umask 077; b=${1%/*}; mkdir "$b" 2>/dev/null; '
    f'[ -O "$b" ] && [ ! -L "$b" ] || exit {NOT_PRIVATE}; '
    f'case $(ls -ld "$b") in drwx------*) ;; *) exit {NOT_PRIVATE}; esac; '
    f'[ ! -e "$1" ] || exit {EXISTS}; mkdir "$1" && '
    'printf "%s %s" "$(date +%s)" "$2" >"$1/record" && mkdir "$1/work" "$1/home" "$1/tmp" || exit 1; '
    f'{SANDBOX_ENV}=$3 sh -c "$5" sh "$1" "$4" </dev/null >/dev/null 2>&1 &'
)
_LIST: Final = (
    'date +%s; for d in "$1"/*/; do d=${d%/}; [ -d "$d" ] || continue; '
    'printf "%s\\t" "$d"; [ -f "$d/record" ] && [ ! -L "$d/record" ] && '
    f'head -c {_RECORD_MAX_BYTES} "$d/record" | tr -d "\\000\\n\\t"; echo; done'
)


class HostFacts(NamedTuple):
    """Facts reported by a host."""

    kernel: str
    missing: list[str]  # needed folders
    base: str  # the sandboxes' folder, without links; "" if unusable
    tools: frozenset[str]


def line_of(script: str, *arguments: str) -> str:
    """A script as a line for the login shell."""
    return shlex.join(["sh", "-c", script, "sh", *arguments])


def look(folder: str, fixtures: str) -> str:
    """A line with output for ``facts``; both arguments are options. Makes nothing."""
    return line_of(_LOOK, folder, fixtures)


def facts(output: bytes) -> HostFacts | None:
    """The parsed output of ``look``; None for any other output."""
    match output.decode(errors="replace").splitlines():
        case ["taxtui", kernel, missing, base, *tools]:
            return HostFacts(kernel, missing.split(), base if FOLDER.fullmatch(base) else "", frozenset(tools))
    return None


def mark_of(name: str) -> str:
    """The value of ``SANDBOX_ENV`` in a sandbox: never the beginning of another sandbox's value."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def make(folder: str, spec: SandboxSpec, ttl_s: int) -> str:
    """A line to make a sandbox; a process on the host removes the sandbox after ``ttl_s``."""
    labels = msgspec.json.encode(spec.labels).decode()
    return line_of(_MAKE, folder, labels, mark_of(spec.name), str(ttl_s), f'sleep "$2"; {_removal(folder)}')


def remove(folder: str) -> str:
    """A line to kill the processes of a sandbox and delete the folder. Idempotent; exits with 0 when done."""
    return line_of(_removal(folder), folder)


def _removal(folder: str) -> str:
    kill = kill_script(mark_of(folder.rpartition("/")[2]), inside=folder.replace(".", "[.]"))
    delete = 'rm -rf "$1" 2>/dev/null || { chmod -R u+rwx "$1"; rm -rf "$1"; }'
    return f'{kill}; _k=$?; {delete}; [ $_k = 0 ] && [ ! -e "$1" ]'


def exists(folder: str) -> str:
    """A line with exit code 0 if the sandbox's working folder exists, else 1."""
    return line_of('[ -d "$1" ]', f"{folder}/work")


def list_all(base: str) -> str:
    """A line with output for ``listed``."""
    return line_of(_LIST, base)


def listed(output: bytes, run_id: str | None) -> Sequence[Found]:
    """The sandboxes in the output of ``list_all``, of a run or of all runs; the records are untrusted."""
    now, *rows = output.decode(errors="replace").splitlines()
    all_found = [entry for row in rows if (entry := _entry(int(now), row)) is not None]
    return [entry for entry in all_found if run_id in (None, entry.run_id)]


def _entry(now_s: int, row: str) -> Found | None:
    folder, _, record = row.partition("\t")
    name = folder.rpartition("/")[2]
    if not _NAME.fullmatch(name):
        return None
    made_s, _, text = record.partition(" ")
    try:
        labels = msgspec.json.decode(text, type=dict[str, str])
        age_s = now_s - int(made_s)
    except (ValueError, msgspec.DecodeError):  # the creator died earlier, or the sandbox changed the record
        labels, age_s = {}, 0
    # The sandbox can write there too: the folder's name decides the run.
    labels[LABEL_RUN] = name.removeprefix("taxtui-").rpartition("-")[0]
    return found(labels, name=name, handle=folder, age_s=age_s)


def inside(folder: str, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """A line to run ``argv`` in a sandbox with this environment and the login's PATH."""
    variables = shlex.join([f"{key}={value}" for key, value in env.items()])
    return f'cd {folder}/work && exec env -i PATH="$PATH" {variables} {shlex.join(argv)}'
