"""Workers on the nodes of a Ray cluster. One actor for each worker starts it and relays its bytes."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import signal
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from taxtui import installed
from taxtui.errors import SubstrateUnavailable, TaxtuiError, UsageError
from taxtui.runner.fanout.launcher import ByteConnection, WorkerConnection
from taxtui.runner.fanout.messages import Assignment, StartupError
from taxtui.runner.fanout.ray_node import NodeRelay
from taxtui.sandboxes.kit.blocking_pool import BlockingPool

REACHED_WITHIN_S: Final = 60.0
PLACED_WITHIN_S: Final = 120.0
"""Time for an actor to get a free core, and for a node to load Python."""
CLOSE_CALL_S: Final = 20.0
"""Time for the call to close a worker, beyond the worker's clean-up."""


class RayNode(NamedTuple):
    """A living node of a cluster."""

    address: str
    id: str
    cores: int  # offered by the node


def place_workers(nodes: Sequence[RayNode], workers: int) -> list[RayNode]:
    """Return a node for each worker, in turns, by free cores.

    Raises:
        UsageError: too few cores for all workers.
    """
    if (cores := sum(node.cores for node in nodes)) < workers:
        have = ", ".join(f"{node.address}: {node.cores}" for node in nodes) or "none"
        raise UsageError(
            f"--ray: {workers} workers, a core each, find room for {cores} (cores offered: {have})",
            fix="use fewer --processes, or add nodes",
        )
    turns = range(max(node.cores for node in nodes))
    return [node for turn in turns for node in nodes if node.cores > turn][:workers]


class RayLauncher:
    """The launcher of workers on the nodes of a Ray cluster."""

    def __init__(self, address: str, workers: int) -> None:
        """Connect nothing yet. Raises ``SubstrateUnavailable``: Ray is not installed."""
        try:
            installed_ray = importlib.util.find_spec("ray") is not None
        except ImportError:
            installed_ray = False
        if not installed_ray:
            raise SubstrateUnavailable("--ray: the module 'ray' is not installed", fix=installed.extra_command("ray"))
        self._address, self._workers = address, workers
        self._ray: Any = None
        self._nodes: list[RayNode] = []

    async def start(self, assignment: Assignment) -> WorkerConnection:
        """Start a worker; the first call connects. Raises ``UsageError``: no cluster, or no room in it."""
        if self._ray is None:
            await self._connect()
        ray, node = self._ray, self._nodes[assignment.share.worker]
        where = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        relay = (
            ray.remote(NodeRelay)
            .options(num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy=where(node.id, soft=False))
            .remote()
        )
        return RayConnection(ray, relay, node, assignment)

    async def _connect(self) -> None:
        problem = await _unanswered(self._address)
        if not problem:
            ray = await asyncio.to_thread(importlib.import_module, "ray")
            try:
                # Ray retries for minutes. The pool is not closed: closing would wait for the call.
                async with asyncio.timeout(REACHED_WITHIN_S):
                    nodes = await BlockingPool(1, "ray").run(lambda: _join(ray, self._address))
            except TimeoutError:
                problem = f"no answer within {REACHED_WITHIN_S:g} s"
            except Exception as error:  # any error of Ray or the client
                problem = next(iter(str(error).splitlines()), type(error).__name__)
        if problem:
            raise UsageError(
                f"no cluster at --ray {self._address}: {problem}",
                fix="start a cluster (ray start --head), or give --ray HOST:PORT of a running cluster",
            )
        # Ray has replaced the handler, and would abort this process 3 s after SIGTERM, within a clean-up.
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        self._ray = ray
        self._nodes = place_workers(nodes, self._workers)

    async def close(self) -> None:
        """Leave the cluster, which ends the run's actors."""
        if self._ray is not None:
            await asyncio.to_thread(self._ray.shutdown)


class RayConnection(ByteConnection):
    """The connection to a worker on a node."""

    def __init__(self, ray: Any, relay: Any, node: RayNode, assignment: Assignment) -> None:
        """``relay``: the handle of an actor, perhaps before the actor's start."""
        super().__init__()
        self._ray, self._relay, self._node, self._assignment = ray, relay, node, assignment
        self._begun = self._lost = False
        self._waiting: list[bytes] = []
        self._posting: asyncio.Task[None] | None = None

    def write(self, lines: bytes) -> None:
        """As ``ByteConnection.write``. Lines written during a call travel together in the next."""
        self._waiting.append(lines)
        if self._posting is None or self._posting.done():
            self._posting = asyncio.create_task(self._post())

    async def _post(self) -> None:
        """Send the waiting lines, one call at a time: calls to an asynchronous actor may overtake each other."""
        while self._waiting and not self._lost:
            lines, self._waiting = b"".join(self._waiting), []
            with contextlib.suppress(self._ray.exceptions.RayError):  # a loss shows in the read under way
                await self._relay.write.remote(lines)

    async def read(self) -> bytes:
        """As ``ByteConnection.read``; nothing once the node or the actor is gone.

        Raises:
            TaxtuiError: the worker cannot start.
        """
        if not self._begun:
            await self._begin()
        try:
            return cast("bytes", await self._relay.read.remote())
        except self._ray.exceptions.RayActorError:
            self._lost = True
            self._ray.kill(self._relay)
            return b""

    async def _begin(self) -> None:
        number = self._assignment.share.worker
        try:
            async with asyncio.timeout(PLACED_WITHIN_S):
                refused = await self._relay.begin.remote(msgspec.msgpack.encode(self._assignment))
        except TimeoutError:
            self._lost = True
            raise UsageError(
                f"worker {number} got no core of {self._node.address} within {PLACED_WITHIN_S:g} s",
                fix="wait until a core is free, or use fewer --processes",
            ) from None
        except self._ray.exceptions.RayError as error:
            self._lost = True
            why = next((line for line in reversed(str(error).splitlines()) if line.strip()), "").strip()
            raise TaxtuiError(
                f"worker {number} could not begin on {self._node.address}: {why}",
                fix="every node needs the same taxtui and the same Python; docs/in-cluster.md has an image",
            ) from None
        if refused:
            raise msgspec.json.decode(refused, type=StartupError).exception()
        self._begun = True

    async def close(self, patience_s: float) -> None:
        if not self._lost:
            self._lost = True
            with contextlib.suppress(self._ray.exceptions.RayError, TimeoutError):
                async with asyncio.timeout(patience_s + CLOSE_CALL_S):
                    await self._relay.close.remote(patience_s)
        if self._posting is not None:
            await asyncio.wait({self._posting})
        self._ray.kill(self._relay)


async def _unanswered(address: str) -> str:
    """Return why nothing listens at HOST:PORT, where Ray would retry for minutes; "" where a cluster may listen."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        return ""
    try:
        async with asyncio.timeout(REACHED_WITHIN_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return f"no answer within {REACHED_WITHIN_S:g} s"
    except OSError as error:
        return error.strerror or str(error)
    writer.close()
    return ""


def _join(ray: Any, address: str) -> list[RayNode]:
    """Connect to a cluster and return its living nodes, by address."""
    logging.getLogger("ray").setLevel(logging.ERROR)  # standard error is taxtui's
    ray.init(address=address, log_to_driver=False, configure_logging=False, logging_level="ERROR", namespace="taxtui")
    return sorted(
        RayNode(node["NodeManagerAddress"], node["NodeID"], int(node["Resources"].get("CPU", 0)))
        for node in ray.nodes()
        if node["Alive"]
    )
