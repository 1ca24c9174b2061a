"""What a dispatch costs beside the least that it could cost, each pair interleaved in one run.

python -m tests.benchmarks.bench_dispatch [ACTIONS]      exit 1 where a ratio is above what was promised

local session   a command in the persistent shell         beside posix_spawn("/bin/true") and wait
docker exec     our whole exec path                        beside the same three requests, raw and blocking
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.runner.trial import bracket
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks, Sandbox, Substrate
from taxtui.substrates.local.substrate import LocalSubstrate

PLAIN = Command(script="true")
NONCE = "0123456789abcdef"
BRACKETED = Command(script=bracket.wrap("true", NONCE, "bash"))

Step = Callable[[], Awaitable[object]]


class RawDocker:
    """``create + start + inspect`` as plain blocking HTTP: kept-alive for the first and last, one taken over."""

    def __init__(self, path: str, container: str) -> None:
        self._path, self._container = path, container
        self._kept = self._connect()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._path)
        return connection

    @staticmethod
    def _ask(connection: socket.socket, method: str, path: str, body: object) -> bytes:
        data = json.dumps(body).encode() if body else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        return connection.recv(65536)

    async def exec(self) -> None:
        wanted = {"Cmd": ["bash", "-c", "true"], "AttachStdout": True, "AttachStderr": True}
        created = self._ask(self._kept, "POST", f"/containers/{self._container}/exec", wanted)
        number = json.loads(created.partition(b"\r\n\r\n")[2])["Id"]
        with self._connect() as taken:
            self._ask(taken, "POST", f"/exec/{number}/start", {"Detach": False, "Tty": False})
            while taken.recv(65536):
                pass
        state = self._ask(self._kept, "GET", f"/exec/{number}/json", None)
        assert json.loads(state.partition(b"\r\n\r\n")[2])["ExitCode"] == 0


async def spawn() -> None:
    """The floor: what the machine needs to start a process and see it end."""
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)  # noqa: ASYNC221, ASYNC222  # blocking is the point


async def p50s_ms(actions: int, *steps: Step, rest_s: float = 0.0) -> list[float]:
    """Medians of steps that take turns, the order changing each turn so that none always follows the same.

    ``rest_s`` passes before each, so that none pays for what another has left to do.
    """
    taken: list[list[int]] = [[] for _ in steps]
    for turn in range(actions + 5):
        for at in (at % len(steps) for at in range(turn, turn + len(steps))):
            await asyncio.sleep(rest_s)
            began = time.perf_counter_ns()
            await steps[at]()
            if turn >= 5:
                taken[at].append(time.perf_counter_ns() - began)
    return [statistics.median(each) / 1e6 for each in taken]


def report(what: str, ours: float, floor: float, promised: float | None = None) -> bool:
    """Print a line; whether the promise was kept."""
    kept = promised is None or ours / floor <= promised
    verdict = "" if promised is None else f"   promised ≤ {promised:.2f}: {'kept' if kept else 'NOT KEPT'}"
    print(f"{what:44} {ours:8.3f} ms   {ours / floor:6.2f} × {floor:7.3f} ms{verdict}")
    return kept


async def sandbox_of(substrate: Substrate, which: str = "") -> Sandbox:
    name = f"taxtui-bench{which}-{os.getpid()}"
    spec = SandboxSpec(name=name, labels={LABEL_RUN: name}, limits=Limits(), ttl_s=600)
    sandbox = await substrate.create(spec, Marks())
    await sandbox.wait_ready(Marks())
    return sandbox


async def local(actions: int) -> bool:
    async with LocalSubstrate() as substrate:
        sandbox = await sandbox_of(substrate)
        try:
            session = await sandbox.open_session()
            floor, plain, bracketed, whole = await p50s_ms(
                actions,
                spawn,
                lambda: session.exec(PLAIN),
                lambda: session.exec(BRACKETED),
                lambda: sandbox.exec(PLAIN),
            )
            await session.close()
        finally:
            await sandbox.destroy()
    name = f"local:{substrate.variant}"
    kept = report(f"{name} session beside posix_spawn", plain, floor, 1.3)
    kept &= report(f"{name} session, bracketed, beside posix_spawn", bracketed, floor, 1.8)
    report(f"{name} exec beside posix_spawn", whole, floor)
    return kept


async def docker(actions: int) -> bool:
    from taxtui.substrates.docker.substrate import DockerSubstrate

    async with DockerSubstrate() as substrate:
        sandbox = await sandbox_of(substrate)
        try:
            raw = RawDocker(substrate.containers.endpoint.path, sandbox.container)  # type: ignore[attr-defined]
            session = await sandbox.open_session()
            floor, ours, persistent = await p50s_ms(
                actions, raw.exec, lambda: sandbox.exec(PLAIN), lambda: session.exec(PLAIN)
            )
            await session.close()
        finally:
            await sandbox.destroy()
    kept = report("docker exec beside raw HTTP", ours, floor, 1.08)
    report("docker session beside raw HTTP", persistent, floor)
    return kept


async def main(actions: int) -> bool:
    kept = await local(actions)
    if not (await _docker_answers()):
        print("docker cannot be used here: not measured")
        return kept
    return await docker(max(20, actions // 5)) and kept


async def _docker_answers() -> bool:
    try:
        from taxtui.substrates.docker.substrate import DockerSubstrate
    except ImportError:
        return False
    return (await DockerSubstrate().check()).ok


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 500)) else 1)
