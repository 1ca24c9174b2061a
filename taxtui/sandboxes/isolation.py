"""Probes of a sandbox's isolation, from inside: each looks for a resource of this machine or of another sandbox.

The neighbour sandbox gets a file, a process and a variable; this machine gets a file, a variable and a listening port.
The sandbox under test looks for all of these, and for the first steps of a break-out. A substrate's declarations do not
count.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from taxtui.errors import SubstrateError
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import Marks, Sandbox, Substrate

LIMITS: Final = Limits(cpus=1.0, memory_mib=256, pids=64)
READY_WITHIN_S: Final = 300.0
COMMAND_TIMEOUT_S: Final = 30.0
_TTL_S: Final = 900.0
_DETAIL_MAX: Final = 120  # characters
_SIZE: Final = re.compile(r"\d{1,15}")
_HEX: Final = re.compile(r"[0-9a-f]{1,16}")


class Tried(NamedTuple):
    """The result of one probe."""

    aspect: str
    holds: bool | None  # isolated or limited; None: not tested
    detail: str


class ProbedPlace(NamedTuple):
    """Two sandboxes, and the canaries on this machine."""

    inside: Sandbox
    neighbour: Sandbox
    secret: str  # in the file, the variable and the process
    file: Path
    port: int


Probe = Callable[[ProbedPlace], Awaitable[Tried]]


async def probe(substrate: Substrate, run_id: str) -> list[Tried]:
    """Run every probe in two sandboxes of this run, and remove both.

    Raises:
        SubstrateError: no sandbox.
    """
    async with contextlib.AsyncExitStack() as stack:
        secret = f"canary{secrets.token_hex(8)}"
        file, port = stack.enter_context(_planted(secret))
        inside, neighbour = [
            await stack.enter_async_context(_sandbox(substrate, run_id, number)) for number in range(2)
        ]
        place = ProbedPlace(inside, neighbour, secret, file, port)
        return [await _tried(name, run_probe, place) for name, run_probe in PROBES.items()]


async def _tried(name: str, run_probe: Probe, place: ProbedPlace) -> Tried:
    try:
        async with asyncio.timeout(2 * COMMAND_TIMEOUT_S):
            seen = await run_probe(place)
            return seen._replace(aspect=name, detail=seen.detail[:_DETAIL_MAX])
    except (SubstrateError, TimeoutError) as error:
        return Tried(name, None, str(error)[:_DETAIL_MAX])


@contextlib.contextmanager
def _planted(secret: str) -> Iterator[tuple[Path, int]]:
    """On this machine: a private file, a variable, and a port without a service."""
    folder = Path(tempfile.mkdtemp(prefix="taxtui-canary-"))
    os.environ["TAXTUI_CANARY"] = secret
    listening = socket.create_server(("", 0))
    try:
        (folder / "file").write_text(secret)
        yield folder / "file", listening.getsockname()[1]
    finally:
        listening.close()
        del os.environ["TAXTUI_CANARY"]
        shutil.rmtree(folder)


@contextlib.asynccontextmanager
async def _sandbox(substrate: Substrate, run_id: str, number: int) -> AsyncIterator[Sandbox]:
    spec = SandboxSpec(
        name=f"taxtui-{run_id}-{number}",
        labels={
            LABEL_RUN: run_id,
            LABEL_TRIAL: str(number),
            LABEL_DEADLINE: str(math.ceil(time.time() + _TTL_S)),
        },
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


def _search(script: str, nothing: str, something: str = "") -> Probe:
    """A probe by a script that prints each thing of this machine in reach, and nothing in an isolated sandbox.

    ``script``: with the canary's ``{secret}``, ``{file}`` and ``{port}``. ``nothing``: the detail of an isolated
    sandbox; ``something``: of another, by default the output.
    """

    async def probed(place: ProbedPlace) -> Tried:
        names = {"secret": place.secret, "file": str(place.file), "port": str(place.port)}
        filled = re.sub(r"\{(secret|file|port)\}", lambda name: names[name[1]], script)
        seen = await _output_of(place.inside, f"{filled}; true")
        return Tried("", not seen, (something or seen) if seen else nothing)

    return probed


_SEARCHES: Final[dict[str, Probe]] = {
    "files": _search("grep -s {secret} {file} && echo", "this user's files are not there", "reads this user's files"),
    "devices": _search(
        "for f in /dev/mem /dev/kmsg /dev/kvm /dev/sd? /dev/vd? /dev/nvme* /dev/dm-*; do "
        "[ -r $f ] && [ ! -d $f ] && echo $f; done",
        "no disk, no memory, no kernel log",
    ),
    "network": _search(
        "for f in $(sed -n 's/^ *\\([^:]*\\):.*/\\1/p' /proc/net/dev); do "
        "case $f in lo|tunl*|sit*|ip6*|gre*|erspan*|ip_vti*) ;; *) echo $f;; esac; done; "
        "(timeout 3 bash -c ': </dev/tcp/127.0.0.1/{port}') 2>/dev/null && echo reaches-this-machine",
        "loopback only",
    ),
    "metadata service": _search(
        "timeout 3 bash -c ': </dev/tcp/169.254.169.254/80' 2>/dev/null && echo reached",
        "does not answer",
        "169.254.169.254 answers",
    ),
    "keys": _search(
        'env | grep -q {secret} && echo "(this machine\'s environment)"; '
        "for f in ~/.ssh ~/.aws ~/.kube ~/.docker ~/.config/gcloud "
        "/etc/docker/key.json /var/run/secrets/kubernetes.io/serviceaccount/token; do [ -r $f ] && echo $f; done",
        "no environment, no credentials",
    ),
    "container daemons": _search(
        "for f in /var/run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock; do "
        "[ -S $f ] && echo $f; done",
        "no socket",
    ),
}


async def _neighbours(place: ProbedPlace) -> Tried:
    half, rest = place.secret[:8], place.secret[8:]  # in two pieces: the search must not match itself
    plant = Command(script=f"echo > /tmp/canary-{place.secret}; sleep 20; true", timeout_s=COMMAND_TIMEOUT_S)
    planted = asyncio.ensure_future(place.neighbour.exec(plant))
    look = (
        f"ls /tmp/canary-{half}''{rest} 2>/dev/null; for f in /proc/[0-9]*/cmdline; do "
        f"tr '\\0' ' ' <$f 2>/dev/null | grep '{half}''{rest}' >/dev/null && echo process; done; true"
    )
    try:
        standing = f"until [ -e /tmp/canary-{half}''{rest} ]; do sleep 0.1; done; echo there"
        await _output_of(place.neighbour, standing)
        seen = await _output_of(place.inside, look)
        processes = await _output_of(place.inside, "ls /proc | grep -c '^[0-9]'")
    finally:
        planted.cancel()
        await asyncio.wait({planted})
    return Tried("other sandboxes", not seen, seen or f"not seen, {processes} processes in the sandbox")


async def _capabilities(place: ProbedPlace) -> Tried:
    output = await _output_of(place.inside, "id -u; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status")
    words = output.split()
    facts = dict(zip(words[1::2], words[2::2], strict=False))
    effective, user = facts.get("CapEff:", ""), words[0] if words else "?"
    detail = f"user {user}, effective {effective or 'unknown'}, no_new_privs {facts.get('NoNewPrivs:', 'unknown')}"
    return Tried("capabilities", int(effective, 16) == 0 if _HEX.fullmatch(effective) else None, detail)


async def _disk(place: ProbedPlace) -> Tried:
    script = (
        "df -Pk . ~ /tmp 2>/dev/null | sed 1d | while read -r _ size _ free _; do echo $size $free; done; ulimit -f"
    )
    output = await _output_of(place.inside, script)
    *numbers, longest_file = output.split() or [""]
    if len(numbers) < 2 or len(numbers) % 2 or not all(map(_SIZE.fullmatch, numbers)):
        return Tried("disk", None, output or "df prints nothing")
    sizes_kib, free_kib = ([int(number) for number in numbers[at::2]] for at in range(2))
    ours = {os.statvfs(path).f_blocks * os.statvfs(path).f_frsize >> 10 for path in ("/", tempfile.gettempdir())}
    shared = not ours.isdisjoint(sizes_kib) and longest_file == "unlimited"
    free_mib = max(free_kib) / 1024
    detail = f"{free_mib:.0f} MiB free" if free_mib < 10 * 1024 else f"{free_mib / 1024:.0f} GiB free"
    return Tried("disk", not shared, detail + (", shared with this machine and not limited" if shared else ""))


async def _pids(place: ProbedPlace) -> Tried:
    wanted = 4 * LIMITS.pids
    script = f"sh -c 'i=0; while [ $i -lt {wanted} ]; do sleep 5 & i=$((i+1)); done; echo all' 2>/dev/null; true"
    try:
        all_started = "all" in await _output_of(place.inside, f"timeout 10 {script}")
    except SubstrateError:
        all_started = False  # the probe could not start ``timeout``
    detail = f"{wanted} processes {'run' if all_started else 'do not run'}, and the limit is {LIMITS.pids}"
    return Tried("pids", not all_started, detail)


async def _memory(place: ProbedPlace) -> Tried:
    wanted = 2 * LIMITS.memory_mib << 20
    try:
        held = await _output_of(place.inside, f"head -c {wanted} /dev/zero | tail -c {wanted} | wc -c")
    except SubstrateError:
        held = ""  # the limit ended the command
    got = held == str(wanted)
    detail = f"{wanted >> 20} MiB are {'' if got else 'not '}available, and the limit is {LIMITS.memory_mib}"
    return Tried("memory", not got, detail)


PROBES: Final[dict[str, Probe]] = {
    **_SEARCHES,
    "other sandboxes": _neighbours,
    "capabilities": _capabilities,
    "disk": _disk,
    "pids": _pids,
    "memory": _memory,
}
"""Every probe; the last two may end a sandbox."""
