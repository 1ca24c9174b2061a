"""An exec in docker beside the same three requests, raw and blocking; both take turns in one run.

python -m tests.benchmarks.bench_dispatch [ACTIONS]      exit 1 where the ratio is above its limit
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
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.docker.substrate import DockerSubstrate

PLAIN = Command(script="true")
LIMIT = 1.08
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


async def p50s_ms(actions: int, *steps: Step) -> list[float]:
    """Medians of steps that take turns, the order changing each turn so that none always follows the same."""
    taken: list[list[int]] = [[] for _ in steps]
    for turn in range(actions + 5):
        for at in (at % len(steps) for at in range(turn, turn + len(steps))):
            began = time.perf_counter_ns()
            await steps[at]()
            if turn >= 5:
                taken[at].append(time.perf_counter_ns() - began)
    return [statistics.median(each) / 1e6 for each in taken]


async def main(actions: int) -> bool:
    """Print both medians and their ratio; whether the ratio is within its limit."""
    if not (await DockerSubstrate().check()).ok:
        print("docker cannot be used here: not measured")
        return True
    name = f"taxtui-bench-{os.getpid()}"
    async with DockerSubstrate() as substrate:
        spec = SandboxSpec(name=name, labels={LABEL_RUN: name}, limits=Limits(), ttl_s=600)
        sandbox = await substrate.create(spec, Marks())
        try:
            await sandbox.wait_ready(Marks())
            raw = RawDocker(substrate.containers.daemon.address.path, sandbox.container)
            session = await sandbox.open_session()
            bare, ours, persistent = await p50s_ms(
                actions, raw.exec, lambda: sandbox.exec(PLAIN), lambda: session.exec(PLAIN)
            )
            await session.close()
        finally:
            await sandbox.destroy()
    for path, taken in (("exec", ours), ("session", persistent)):
        print(f"docker {path:8} {taken:8.3f} ms   {taken / bare:6.2f} × {bare:7.3f} ms raw HTTP")
    print(f"limit of exec: {LIMIT} ×")
    return ours / bare <= LIMIT


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 100)) else 1)
