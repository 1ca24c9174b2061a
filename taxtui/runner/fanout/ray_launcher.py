"""Workers on the nodes of a Ray cluster. One actor for each worker starts it and relays its bytes.

``python -m taxtui.runner.fanout.ray_launcher ADDRESS`` says which nodes a cluster has. A run asks that first, in a
process that can be ended: Ray retries a dead address for minutes, with output on stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import sys
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from taxtui import installed
from taxtui.errors import SubstrateUnavailable, TaxtuiError, UsageError
from taxtui.runner.fanout.launcher import ByteConnection, Chunk, WorkerConnection
from taxtui.runner.fanout.messages import Assignment, StartupError
from taxtui.runner.fanout.ray_node import NodeRelay, decode_chunk

AUTO: Final = "auto"
REACHED_WITHIN_S: Final = 60.0
PLACED_WITHIN_S: Final = 120.0
"""Time for an actor to get a free core, and for a node to load Python."""
UNAVAILABLE_FOR_S: Final = 60.0
"""Time during which calls to an unavailable actor are repeated."""
RETRY_S: Final = 0.5
CLOSE_CALL_S: Final = 20.0
"""Time for the call to close a worker, beyond the worker's clean-up."""


class RayNode(msgspec.Struct, frozen=True):
    """A living node of a cluster."""

    id: str
    address: str
    cores: int  # offered by the node


class RayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The Ray cluster, and the number of workers on a node."""

    address: str = AUTO
    per_node: int | None = None  # most workers; None: one for each core


def place_workers(nodes: Sequence[RayNode], workers: int, per_node: int | None) -> list[RayNode]:
    """Return a node for each worker, in turns, by free cores.

    Raises:
        UsageError: too few cores for all workers.
    """
    room = {node: node.cores if per_node is None else min(per_node, node.cores) for node in nodes}
    if sum(room.values()) < workers:
        room_text = "a core each" if per_node is None else f"a core each and at most {per_node} on a node"
        have = ", ".join(f"{node.address}: {node.cores}" for node in nodes) or "none"
        raise UsageError(
            f"--ray: {workers} workers, {room_text}, find room for {sum(room.values())} (cores offered: {have})",
            fix="use fewer --processes, raise --set per_node, or add nodes",
        )
    placed: list[RayNode] = []
    while len(placed) < workers:
        for node in nodes:
            if room[node] and len(placed) < workers:
                room[node] -= 1
                placed.append(node)
    return placed


class RayLauncher:
    """The launcher of workers on the nodes of a Ray cluster."""

    def __init__(self, options: RayOptions, workers: int) -> None:
        """Connect nothing yet. Raises ``SubstrateUnavailable``: Ray is not installed."""
        try:
            installed_ray = importlib.util.find_spec("ray") is not None
        except ImportError:
            installed_ray = False
        if not installed_ray:
            raise SubstrateUnavailable("--ray: the module 'ray' is not installed", fix=installed.extra_command("ray"))
        self._options, self._workers = options, workers
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
        return ByteConnection(RayTransport(ray, relay, node, assignment))

    async def _connect(self) -> None:
        nodes, ray = await asyncio.gather(
            nodes_of(self._options.address), asyncio.to_thread(importlib.import_module, "ray")
        )
        self._nodes = place_workers(nodes, self._workers, self._options.per_node)
        await asyncio.to_thread(_join, ray, self._options.address)
        self._ray = ray

    async def close(self) -> None:
        """Leave the cluster, which ends the run's actors."""
        if self._ray is not None:
            await asyncio.to_thread(self._ray.shutdown)


class RayTransport:
    """The bytes of a worker on a node. Each poll carries the waiting lines."""

    def __init__(self, ray: Any, relay: Any, node: RayNode, assignment: Assignment) -> None:
        """``relay``: the handle of an actor, perhaps before the actor's start."""
        self._ray, self._relay, self._node, self._assignment = ray, relay, node, assignment
        self._begun = self._lost = self._polling = self._posting = False
        self._poll = self._packet = 0
        self._waiting: list[bytes] = []
        self._posts: set[asyncio.Task[None]] = set()

    def write(self, lines: bytes) -> None:
        """As ``ByteTransport.write``. During a poll the lines travel in a call of their own."""
        self._waiting.append(lines)
        if self._polling and not self._posting:
            self._posting = True
            asyncio.get_running_loop().call_soon(self._post)

    def _post(self) -> None:
        self._posting = False
        if self._waiting and not self._lost:
            post = asyncio.ensure_future(self._posted(*self._next_packet()))
            self._posts.add(post)
            post.add_done_callback(self._posts.discard)

    def _next_packet(self) -> tuple[int, bytes]:
        packet, lines = self._packet, b"".join(self._waiting)
        self._packet += 1
        self._waiting = []
        return packet, lines

    async def _posted(self, packet: int, lines: bytes) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):  # the poll under way reports the loss
            await self._ask("write", packet, lines)

    async def read(self) -> Chunk:
        """As ``ByteTransport.read``; closed once the node or the actor is gone.

        Raises:
            TaxtuiError: the worker cannot start.
        """
        if self._lost:
            return Chunk([], b"", closed=True)
        if not self._begun:
            await self._begin()
        self._poll += 1
        reply = self._ask("poll", self._poll, *self._next_packet())
        self._polling = True
        try:
            return decode_chunk(await reply)
        except self._ray.exceptions.RayActorError:
            self._lost = True
            return Chunk([], b"", closed=True)
        finally:
            self._polling = False

    async def _begin(self) -> None:
        number = self._assignment.share.worker
        try:
            async with asyncio.timeout(PLACED_WITHIN_S):
                refused = await self._ask("begin", msgspec.msgpack.encode(self._assignment))
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

    async def _ask(self, method: str, *values: object) -> Any:
        """Call a method of the actor, again while the actor is unavailable."""
        gives_up = asyncio.get_running_loop().time() + UNAVAILABLE_FOR_S
        while True:
            try:
                return await getattr(self._relay, method).remote(*values)
            except self._ray.exceptions.ActorUnavailableError:
                if asyncio.get_running_loop().time() > gives_up:
                    raise
            await asyncio.sleep(RETRY_S)

    async def close(self, patience_s: float) -> None:
        if not self._lost:
            self._lost = True
            with contextlib.suppress(self._ray.exceptions.RayError, TimeoutError):
                async with asyncio.timeout(patience_s + CLOSE_CALL_S):
                    await self._ask("close", patience_s)
        await asyncio.gather(*self._posts)
        self._ray.kill(self._relay)


async def nodes_of(address: str) -> list[RayNode]:
    """Return the living nodes of a cluster, by address.

    Raises:
        UsageError: no cluster answers at the address in time.
    """
    if why := await _unanswered(address):
        raise _no_cluster(address, why)
    asking = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "taxtui.runner.fanout.ray_launcher", address),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    why = f"no answer within {REACHED_WITHIN_S:g} s"
    try:
        async with asyncio.timeout(REACHED_WITHIN_S):
            output, _ = await asking.communicate()
        nodes = msgspec.json.decode(output.splitlines()[-1], type=list[RayNode] | str)
        if isinstance(nodes, list):
            return sorted(nodes, key=lambda node: (node.address, node.id))
        why = nodes
    except TimeoutError:
        pass
    except (IndexError, msgspec.DecodeError):
        why = f"Ray ended with code {asking.returncode}"
    finally:
        if asking.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                asking.kill()
            await asking.wait()
    raise _no_cluster(address, why)


async def _unanswered(address: str) -> str:
    """Return why nothing listens at HOST:PORT; "" where a cluster may listen."""
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


def _no_cluster(address: str, why: str) -> UsageError:
    return UsageError(
        f"no cluster at --ray {address}: {why}",
        fix="start a cluster (ray start --head), or give --ray HOST:PORT of a running cluster",
    )


def _join(ray: Any, address: str) -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)  # standard error is taxtui's
    ray.init(address=address, log_to_driver=False, configure_logging=False, logging_level="ERROR", namespace="taxtui")


def _say_nodes(address: str) -> None:
    """Print the nodes as JSON, or as a JSON string why there are none."""
    import ray

    nodes: list[RayNode] | str
    try:
        cluster: Any = ray
        _join(cluster, address)
        nodes = [
            RayNode(node["NodeID"], node["NodeManagerAddress"], int(node["Resources"].get("CPU", 0)))
            for node in cluster.nodes()
            if node["Alive"]
        ]
        cluster.shutdown()
    except Exception as error:  # any error of Ray or the client
        nodes = next(iter(str(error).splitlines()), type(error).__name__)
    print(msgspec.json.encode(nodes).decode())


if __name__ == "__main__":
    _say_nodes(sys.argv[1])
