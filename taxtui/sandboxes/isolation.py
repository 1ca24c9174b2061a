"""Probes of a sandbox's isolation, from inside: each looks for a resource of this machine or of another sandbox.

The neighbour sandbox gets a file, a process and a variable; this machine gets a file, a variable and a listening port.
The sandbox under test looks for all of these, and for the first steps of a break-out. A substrate's declarations do not
count.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from taxtui.errors import SubstrateError
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.protocol import Marks, Sandbox, Substrate

LIMITS: Final = Limits(cpus=1.0, memory_mib=256, pids=64)
READY_WITHIN_S: Final = 300.0
COMMAND_TIMEOUT_S: Final = 30.0
_TTL_S: Final = 900.0
_DETAIL_MAX: Final = 120  # characters
UNKNOWN: Final = "?"
"""The output of a script that cannot look."""
_PROGRAMS: Final = ("bash", "df", "env", "grep", "head", "sed", "tail", "timeout", "tr", "wc")
"""Programs of the scripts. Without one of its programs, a script cannot look."""


class Tried(NamedTuple):
    """The result of one probe."""

    aspect: str
    holds: bool | None  # isolated or limited; None: not tested
    detail: str


class Probe(NamedTuple):
    """A script that prints each thing of this machine or of a neighbour in reach, and nothing in an isolated sandbox.

    A script that cannot look prints ``UNKNOWN``. A word in capitals is replaced by what ``_planted`` has put there.
    """

    script: str
    isolated: str  # the detail without output
    reached: str = ""  # the detail with output, by default the output
    ends: bool = False  # a limit may end the command, or keep it from starting: then the limit holds

    @property
    def checked(self) -> str:
        """The script, after a check that its programs exist."""
        programs = " ".join(name for name in _PROGRAMS if re.search(rf"\b{name}\b", self.script))
        return f"for p in {programs}; do command -v $p >/dev/null || {{ echo '{UNKNOWN}'; exit; }}; done; {self.script}"


_PIDS: Final = 4 * LIMITS.pids
_BYTES: Final = 2 * LIMITS.memory_mib << 20

PROBES: Final[dict[str, Probe]] = {
    "files": Probe("grep -s SECRET FILE && echo", "this user's files are not there", "reads this user's files"),
    "devices": Probe(
        "for f in /dev/mem /dev/kmsg /dev/kvm /dev/sd? /dev/vd? /dev/nvme* /dev/dm-*; do "
        "[ -r $f ] && [ ! -d $f ] && echo $f; done",
        "no disk, no memory, no kernel log",
    ),
    "network": Probe(
        "[ -r /proc/net/dev ] || echo '?'; for f in $(sed -n 's/^ *\\([^:]*\\):.*/\\1/p' /proc/net/dev); do "
        "case $f in lo|tunl*|sit*|ip6*|gre*|erspan*|ip_vti*) ;; *) echo $f;; esac; done; "
        "(timeout 3 bash -c ': </dev/tcp/127.0.0.1/PORT') 2>/dev/null && echo reaches-this-machine",
        "loopback only",
    ),
    "metadata service": Probe(
        "timeout 3 bash -c ': </dev/tcp/169.254.169.254/80' 2>/dev/null && echo reached",
        "does not answer",
        "169.254.169.254 answers",
    ),
    "keys": Probe(
        'env | grep -q SECRET && echo "(this machine\'s environment)"; '
        "for f in ~/.ssh ~/.aws ~/.kube ~/.docker ~/.config/gcloud "
        "/etc/docker/key.json /var/run/secrets/kubernetes.io/serviceaccount/token; do [ -r $f ] && echo $f; done",
        "no environment, no credentials",
    ),
    "container daemons": Probe(
        "for f in /var/run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock; do "
        "[ -S $f ] && echo $f; done",
        "no socket",
    ),
    "other sandboxes": Probe(
        "ls /tmp/canary-HALVES 2>/dev/null; for f in /proc/[0-9]*/cmdline; do "
        "tr '\\0' ' ' <$f 2>/dev/null | grep HALVES >/dev/null && echo process; done",
        "not seen",
    ),
    "capabilities": Probe(
        "grep -qs CapEff: /proc/self/status || echo '?'; "
        "grep -s CapEff: /proc/self/status | grep -v ':[[:space:]]*0*$'",
        "no effective capabilities",
    ),
    "disk": Probe(
        "df -Pk . 2>/dev/null | grep -q ' [0-9]' || echo '?'; "
        "[ \"$(ulimit -f)\" = unlimited ] && df -Pk . ~ /tmp 2>/dev/null | grep -E '^[^ ]+ +(DISKS) '",
        "limited, or not this machine's",
        "shared with this machine and not limited",
    ),
    "pids": Probe(
        f"timeout 10 sh -c 'i=0; while [ $i -lt {_PIDS} ]; do sleep 5 & i=$((i+1)); done; echo all' 2>/dev/null",
        f"{_PIDS} processes do not run, and the limit is {LIMITS.pids}",
        f"{_PIDS} processes run, and the limit is {LIMITS.pids}",
        ends=True,
    ),
    "memory": Probe(
        f"head -c {_BYTES} /dev/zero | tail -c {_BYTES} | wc -c | grep {_BYTES}",
        f"{_BYTES >> 20} MiB are not available, and the limit is {LIMITS.memory_mib}",
        f"{_BYTES >> 20} MiB are available, and the limit is {LIMITS.memory_mib}",
        ends=True,
    ),
}
"""Every probe; the last two may end a sandbox."""


async def probe(substrate: Substrate, run_id: str) -> list[Tried]:
    """Run every probe in a sandbox of this run, beside another, and remove both.

    Raises:
        SubstrateError: no sandbox.
    """
    async with contextlib.AsyncExitStack() as stack:
        secret = f"canary{secrets.token_hex(8)}"
        planted = stack.enter_context(_planted(secret))
        inside, neighbour = [
            await stack.enter_async_context(_sandbox(substrate, run_id, number)) for number in range(2)
        ]
        plant = Command(script=f"echo > /tmp/canary-{secret}; sleep 600; true", timeout_s=_TTL_S)
        standing = asyncio.ensure_future(neighbour.exec(plant))
        problem = ""
        try:
            try:
                async with asyncio.timeout(2 * COMMAND_TIMEOUT_S):
                    await _output_of(neighbour, f"until [ -e /tmp/canary-{secret} ]; do sleep 0.1; done")
            except (SubstrateError, TimeoutError) as error:
                problem = str(error) or "the neighbour does not answer"
            found = [await _tried(name, run_probe, inside, planted) for name, run_probe in PROBES.items()]
            if problem:  # nothing was planted: a search without a result is no proof
                unseen = Tried("other sandboxes", None, problem[:_DETAIL_MAX])
                found = [unseen if each.aspect == unseen.aspect and each.holds else each for each in found]
            return found
        finally:
            standing.cancel()
            await asyncio.wait({standing})


async def _tried(name: str, run_probe: Probe, inside: Sandbox, planted: dict[str, str]) -> Tried:
    script = run_probe.checked
    for word, value in planted.items():
        script = script.replace(word, value)
    try:
        async with asyncio.timeout(2 * COMMAND_TIMEOUT_S):
            seen = await _output_of(inside, f"{script}; true")
    except (SubstrateError, TimeoutError) as error:
        if not run_probe.ends or isinstance(error, TimeoutError):
            return Tried(name, None, str(error)[:_DETAIL_MAX])
        seen = ""
    if seen == UNKNOWN:
        return Tried(name, None, "cannot be seen")
    detail = (run_probe.reached or seen) if seen else run_probe.isolated
    return Tried(name, not seen, detail[:_DETAIL_MAX])


@contextlib.contextmanager
def _planted(secret: str) -> Iterator[dict[str, str]]:
    """On this machine: a private file, a variable, and a port without a service; and what a script finds them by."""
    folder = Path(tempfile.mkdtemp(prefix="taxtui-canary-"))
    os.environ["TAXTUI_CANARY"] = secret
    listening = socket.create_server(("", 0))
    disks = {os.statvfs(path).f_blocks * os.statvfs(path).f_frsize >> 10 for path in ("/", tempfile.gettempdir())}
    try:
        (folder / "file").write_text(secret)
        yield {
            "SECRET": secret,
            "FILE": str(folder / "file"),
            "PORT": str(listening.getsockname()[1]),
            "HALVES": f"{secret[:8]}''{secret[8:]}",  # in two pieces: the search must not match itself
            "DISKS": "|".join(map(str, disks)),
        }
    finally:
        listening.close()
        del os.environ["TAXTUI_CANARY"]
        shutil.rmtree(folder)


@contextlib.asynccontextmanager
async def _sandbox(substrate: Substrate, run_id: str, number: int) -> AsyncIterator[Sandbox]:
    spec = SandboxSpec(
        name=f"taxtui-{run_id}-{number}",
        labels=labels.of_trial(run_id, number, _TTL_S),
        limits=LIMITS,
        ttl_s=_TTL_S,
    )
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            sandbox = await substrate.create(spec, Marks())
            await sandbox.wait_ready(Marks())
        yield sandbox
    finally:
        for seen in await substrate.find(run_id):
            if seen.name == spec.name:
                await substrate.reap(seen)


async def _output_of(sandbox: Sandbox, script: str) -> str:
    """A script's output, as a single line. Raises ``SubstrateError``."""
    result = await sandbox.exec(Command(script=script, timeout_s=COMMAND_TIMEOUT_S))
    return " ".join(result.stdout.decode(errors="replace").split())
