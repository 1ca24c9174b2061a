"""The state behind the Kubernetes stand-in: pods that live, fail and die, and the history that watches replay.

A pod's PID 1 is really started in a folder of its own and is sent a real TERM when the pod is deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.standins.standin_place import Place

Json = dict[str, Any]
NODE = "node-1"
IMAGE_BYTES = 123_456_789
SCHEDULE_S = 0.002


class Refused(Exception):
    """An answer that is no success: its code, its reason, and what it says."""


class Histories:
    """Objects of a kind by (namespace, name), each change numbered and kept for watches."""

    def __init__(self, plural: str) -> None:
        self.plural = plural
        self.objects: dict[tuple[str, str], Json] = {}
        self.version = 1
        self.forgotten = 1  # resource versions before this one are too old to watch from
        self.history: list[tuple[int, str, Json]] = []
        self.watchers: set[asyncio.Queue[None]] = set()

    def forget_history(self) -> None:
        """As etcd's compaction does: a watch from an older version gets 410."""
        self.forgotten = self.version
        self.history.clear()

    def accept(self, namespace: str, body: Json) -> Json:
        """Keep a new object, unless there is one of its name; the caller tells watches of it."""
        name = body["metadata"]["name"]
        if (namespace, name) in self.objects:
            raise Refused(409, "AlreadyExists", f'{self.plural} "{name}" already exists')
        made = copy.deepcopy(body)
        made["metadata"] |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": now()}
        self.objects[namespace, name] = made
        return made

    def one(self, namespace: str, name: str, uid: str | None = None) -> Json:
        """The object of this name, if there is one and it has the uid that is asked for."""
        each = self.objects.get((namespace, name))
        if each is None:
            raise Refused(404, "NotFound", f'{self.plural} "{name}" not found')
        if uid not in (None, each["metadata"]["uid"]):
            text = f"the UID in the precondition ({uid}) does not match the UID in record"
            raise Refused(409, "Conflict", text)
        return each

    def since(self, version: int, matches: Callable[[Json], bool]) -> list[tuple[int, str, Json]]:
        found: list[tuple[int, str, Json]] = []
        for event in reversed(self.history):
            if event[0] <= version:
                break
            if matches(event[2]):
                found.append(event)
        return found[::-1]

    def emit(self, kind: str, about: Json) -> None:
        """Note that an object is as it is now."""
        self.version += 1
        about["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, kind, copy.deepcopy(about)))
        for queue in self.watchers:
            queue.put_nowait(None)


class Pods(Histories):
    """Every pod.

    The knobs: ``fate`` of the next pods (``runs``, ``unschedulable``, ``image_pull_backoff``, ``no_sandbox`` for a
    runtime class without handler, seen in events only), ``stuck`` for deletions that never end, ``start_s``; ``cold``:
    the next pod's node pulls its image of ``IMAGE_BYTES`` for ``pull_s``.
    """

    def __init__(self) -> None:
        super().__init__("pods")
        self.places: dict[str, Place] = {}
        self.fate = "runs"
        self.stuck = False
        self.start_s = 0.01
        self.cold = False
        self.pull_s = 0.05
        self.made = 0
        self.events: list[Json] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # ----------------------------------------------------------------------------------------------------- changes

    def create(self, namespace: str, pod: Json, volume: Path | None = None) -> Json:
        """Accept a pod and let it live, with its files in ``volume`` if it has one."""
        pod = self.accept(namespace, pod)
        pod["status"] = {"phase": "Pending", "qosClass": "Guaranteed"}
        self.places[pod["metadata"]["uid"]] = Place("pod-", volume)
        self.made += 1
        self.emit("ADDED", pod)
        self._spawn(self._live(pod))
        return pod

    def delete(self, namespace: str, name: str, grace_s: int | None = None, uid: str | None = None) -> Json:
        """Begin to end a pod."""
        pod = self.one(namespace, name, uid)
        again = "deletionTimestamp" in pod["metadata"]
        grace = pod["spec"].get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
        pod["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": grace}
        self.emit("MODIFIED", pod)
        if not self.stuck and not again:
            self._spawn(self._end(pod, grace))
        return pod

    def evict(self, name: str) -> None:
        self._fail(name, {"reason": "Evicted", "message": "The node was low on resource: memory."}, "Error", 137)

    def oom_kill(self, name: str) -> None:
        """What the kernel does to a container over its limit, all its processes included."""
        self._fail(name, {}, "OOMKilled", 137)

    def vanish(self, name: str) -> None:
        """The node is gone without a word: the API says so, and connections to the pod stay open and silent."""
        self._fail(name, {"reason": "NodeLost"}, "Error", 137, kill=False)

    def release(self) -> None:
        self.stuck = False
        for pod in list(self.objects.values()):
            if "deletionTimestamp" in pod["metadata"]:
                self._spawn(self._end(pod, 0))

    def running(self) -> int:
        """Process groups alive in all pods, PID 1 included."""
        return sum(place.alive() for place in self.places.values())

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for place in self.places.values():
            await place.remove()

    # ------------------------------------------------------------------------------------------------------- lives

    async def _live(self, pod: Json) -> None:
        await asyncio.sleep(SCHEDULE_S)
        if self.fate == "unschedulable":
            text = "0/3 nodes are available: 3 Insufficient cpu."
            pod["status"]["conditions"] = [_condition("PodScheduled", "False", "Unschedulable", text)]
            self.emit("MODIFIED", pod)
            return
        pod["spec"]["nodeName"] = NODE
        pod["status"]["conditions"] = [_condition("PodScheduled")]
        self.emit("MODIFIED", pod)
        if self.fate == "image_pull_backoff":
            for reason in ("ErrImagePull", "ImagePullBackOff"):
                await asyncio.sleep(self.start_s)
                waiting = {"reason": reason, "message": "Back-off pulling image: not found"}
                pod["status"]["containerStatuses"] = [_container(pod, {"waiting": waiting})]
                self.emit("MODIFIED", pod)
            return
        if self.fate == "no_sandbox":
            for second, kind, reason, message in (
                (1, "Warning", "FailedScheduling", "0/1 nodes are available"),
                (2, "Normal", "Scheduled", "Successfully assigned"),
                (3, "Warning", "FailedCreatePodSandBox", 'no runtime for\n"gvisor" is configured'),
            ):
                self._tell(pod, second, kind, reason, message)
            pod["status"]["conditions"].append(_condition("PodReadyToStartContainers", "False"))
            self.emit("MODIFIED", pod)
            return
        await asyncio.sleep(self.start_s)
        if self.objects.get((pod["metadata"]["namespace"], pod["metadata"]["name"])) is not pod:
            return  # deleted meanwhile: nothing follows the event DELETED
        pod["status"]["conditions"] += [_condition("Initialized"), _condition("PodReadyToStartContainers")]
        self.emit("MODIFIED", pod)
        await asyncio.sleep(self.start_s)
        container = pod["spec"]["containers"][0]
        await self._bring(pod, container["image"])
        place = self.places[pod["metadata"]["uid"]]
        with contextlib.suppress(ProcessLookupError):  # deleted meanwhile
            await place.start(container["command"], environment(pod, place), stdin=False, quiet=True)
        if "deletionTimestamp" in pod["metadata"]:
            return
        started = {"running": {"startedAt": now()}}
        ready = ("PodScheduled", "Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready")
        pod["status"] |= {
            "phase": "Running",
            "startTime": now(),
            "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [_condition(kind) for kind in ready],
            "containerStatuses": [_container(pod, started, ready=True)],
        }
        self.emit("MODIFIED", pod)
        if "activeDeadlineSeconds" not in pod["spec"]:
            return
        await asyncio.sleep(pod["spec"]["activeDeadlineSeconds"])
        if self.objects.get((pod["metadata"]["namespace"], pod["metadata"]["name"])) is pod:
            late = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than its deadline"}
            self._fail(pod["metadata"]["name"], late, "Error", 137)

    async def _bring(self, pod: Json, image: str) -> None:
        """The image onto the node, in the kubelet's words (pkg/kubelet/images/image_manager.go)."""
        text = f'Container image "{image}" already present on machine'
        if self.cold:
            self.cold = False
            await asyncio.sleep(self.pull_s)
            took = f"{round(self.pull_s * 1000)}ms"
            text = f'Successfully pulled image "{image}" in {took} ({took} including waiting).'
            text += f" Image size: {IMAGE_BYTES} bytes."
        self._tell(pod, 1, "Normal", "Pulled", text)

    def _tell(self, pod: Json, second: int, kind: str, reason: str, message: str) -> None:
        about = pod["metadata"]
        self.events.append(
            {
                "metadata": {"name": f"{about['name']}.{second}", "namespace": about["namespace"]},
                "involvedObject": {"kind": "Pod", "name": about["name"], "uid": about["uid"]},
                "type": kind,
                "reason": reason,
                "message": message,
                "lastTimestamp": f"2026-01-01T00:00:{second:02d}Z",
            }
        )

    def _fail(self, name: str, status: Json, reason: str, code: int, *, kill: bool = True) -> None:
        pod = next(pod for (_, key), pod in self.objects.items() if key == name)
        if kill:
            self.places[pod["metadata"]["uid"]].kill()
        terminated = {"exitCode": code, "reason": reason, "startedAt": now(), "finishedAt": now()}
        conditions = [_condition("PodScheduled"), _condition("Ready", "False", "PodFailed")]
        pod["status"] |= {
            "phase": "Failed",
            "conditions": conditions,
            "containerStatuses": [_container(pod, {"terminated": terminated})],
            **status,
        }
        self.emit("MODIFIED", pod)

    async def _end(self, pod: Json, grace_s: int) -> None:
        place = self.places[pod["metadata"]["uid"]]
        if grace_s and place.processes:
            first = place.processes[0]
            with contextlib.suppress(ProcessLookupError, TimeoutError):
                first.terminate()
                async with asyncio.timeout(grace_s):
                    await first.wait()
        await place.remove()
        if self.objects.pop((pod["metadata"]["namespace"], pod["metadata"]["name"]), None) is not None:
            self.emit("DELETED", pod)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def environment(pod: Json, place: Place) -> dict[str, str]:
    """The container's variables; a path inside its volume becomes one in the place's folder."""
    container = pod["spec"]["containers"][0]
    inside = container.get("workingDir", "")
    values = {entry["name"]: entry["value"] for entry in container.get("env", ())}
    return {key: value.replace(inside, str(place.folder)) if inside else value for key, value in values.items()}


def _condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Json:
    told = {"reason": reason, "message": message}
    return {"type": kind, "status": status, "lastTransitionTime": now(), **{k: v for k, v in told.items() if v}}


def _container(pod: Json, state: Json, *, ready: bool = False) -> Json:
    spec = pod["spec"]["containers"][0]
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "state": state,
    }


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
