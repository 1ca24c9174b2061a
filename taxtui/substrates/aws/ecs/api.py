"""The calls to ECS that the sandboxes and the substrate share, and what they become where they fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, TypeVar

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SubstrateError, SubstrateUnavailable
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.removal import insist, remove
from taxtui.substrates.aws.connection import (
    MAX_CALLS,
    SDK_ERRORS,
    AwsIdentity,
    Poller,
    identify,
    open_client,
    provenance,
)
from taxtui.substrates.aws.ecs.channel import DataChannel
from taxtui.substrates.aws.ecs.options import EcsOptions
from taxtui.substrates.aws.ecs.task import CONTAINER, TaskState, started_by
from taxtui.substrates.aws.failure import classified, code_of

T = TypeVar("T")

DESCRIBE_BATCH: Final = 100


class EcsApi:
    """One cluster of one account and region; each call takes a thread of the pool."""

    def __init__(self, options: EcsOptions) -> None:
        """Nothing is opened yet."""
        self.options = options
        self.poller = Poller(self._describe, options.poll_s, DESCRIBE_BATCH)
        self._pool = BlockingPool(MAX_CALLS, "ecs")
        self._client: Any = None
        self._sts: Any = None
        self._ssm: Any = None

    async def open(self) -> None:
        """Open clients. Raises ``SubstrateUnavailable``."""
        self._client = (await self._pool.run(lambda: open_client("ecs", self.options))).value
        self._sts = (await self._pool.run(lambda: open_client("sts", self.options))).value
        self._ssm = (await self._pool.run(lambda: open_client("ssm", self.options))).value

    async def close(self) -> None:
        """Stop looking, and wait for the calls under way."""
        await self.poller.close()
        await self._pool.__aexit__()

    @property
    def is_open(self) -> bool:
        """Whether calls can be made."""
        return self._client is not None

    @property
    def region(self) -> str:
        """Where the calls go."""
        return str(self._client.meta.region_name)

    @property
    def provenance(self) -> Literal["measured", "stand_in"]:
        """Whether it is AWS that answers them."""
        return provenance(self._client.meta.endpoint_url)

    async def _call(
        self,
        doing: str,
        call: Callable[[], T],
        otherwise: type[SubstrateError] = SubstrateUnavailable,
        *,
        dispose: Callable[[T], object] | None = None,
    ) -> T:
        """One API call in a thread; an SDK's exception becomes one of ours, ``otherwise`` where nothing fits better."""
        try:
            return (await self._pool.run(call, dispose=dispose)).value
        except SDK_ERRORS as error:
            raise classified(error, f"ecs: {doing}", otherwise) from error

    async def identity(self) -> AwsIdentity:
        """Who we are. Raises ``SubstrateUnavailable``."""
        return await self._call("looking up the identity", lambda: identify(self._sts))

    async def clusters(self) -> list[Mapping[str, Any]]:
        """The cluster with its configuration, if there is one of its name. Raises ``SubstrateUnavailable``."""
        answer = await self._call(
            "describing the cluster",
            lambda: self._client.describe_clusters(clusters=[self.options.cluster], include=["CONFIGURATIONS"]),
        )
        return list(answer.get("clusters", []))

    async def try_listing(self) -> None:
        """Ask whether tasks can be listed. Raises ``SubstrateUnavailable``."""
        cluster = self.options.cluster
        await self._call("listing tasks", lambda: self._client.list_tasks(cluster=cluster, maxResults=1))

    async def register(self, wanted: Mapping[str, Any]) -> str:
        """The ARN of a new task definition. Raises ``CreateFailed``."""
        answer = await self._call(
            "registering a task definition", lambda: self._client.register_task_definition(**wanted), CreateFailed
        )
        return str(answer["taskDefinition"]["taskDefinitionArn"])

    async def deregister(self, arn: str) -> None:
        """Take a task definition away; running tasks do not need it. Raises ``SubstrateUnavailable``."""
        await self._call("deregistering", partial(self._client.deregister_task_definition, taskDefinition=arn))

    async def run(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """RunTask's answer; what an abandoned one has started is stopped. Raises ``CreateFailed``."""
        answer: Mapping[str, Any] = await self._call(
            "running a task", lambda: self._client.run_task(**request), CreateFailed, dispose=self._discard
        )
        return answer

    async def listed(self, run_id: str | None) -> list[str]:
        """The ARNs of the tasks of a run, or of all. Raises ``SubstrateUnavailable``."""
        return await self._call("listing tasks", lambda: self._list(run_id))

    def _list(self, run_id: str | None) -> list[str]:
        chosen = {"startedBy": started_by(run_id)} if run_id is not None else {}
        pages = self._client.get_paginator("list_tasks").paginate(cluster=self.options.cluster, **chosen)
        return [str(arn) for page in pages for arn in page["taskArns"]]

    async def tasks(self, arns: list[str]) -> list[dict[str, Any]]:
        """At most ``DESCRIBE_BATCH`` tasks, described with their tags. Raises ``SubstrateUnavailable``."""
        answer = await self._call(
            "describing tasks",
            lambda: self._client.describe_tasks(cluster=self.options.cluster, tasks=arns, include=["TAGS"]),
        )
        return list(answer["tasks"])

    async def _describe(self, arns: list[str]) -> Mapping[str, TaskState]:
        return {task["taskArn"]: TaskState.of(task) for task in await self.tasks(arns)}

    def _stop(self, arn: str) -> object:
        return self._client.stop_task(cluster=self.options.cluster, task=arn, reason="taxtui: done")

    def _discard(self, answer: Mapping[str, Any]) -> None:
        for task in answer["tasks"]:
            insist(partial(self._stop, task["taskArn"]), SDK_ERRORS)

    async def remove(self, arn: str, launched_s: float) -> None:
        """Stop a task and wait until it has; throttling is waited out. Raises ``CleanupFailed``."""

        async def stopped() -> bool | None:
            state = (await self.poller.next(arn)).state
            return None if state is None else state.status == "STOPPED"

        await remove(
            f"task {arn.rpartition('/')[2]}",
            lambda: self._ask_to_stop(arn),
            stopped,
            look_s=0.0,
            first_s=self.options.poll_s,
            launched_s=launched_s,
        )

    async def _ask_to_stop(self, arn: str) -> bool:
        """Whether ECS knows the task."""
        try:
            await self._pool.run(lambda: self._stop(arn))
        except SDK_ERRORS as error:
            if code_of(error) != "InvalidParameterException" or "not found" not in str(error):
                raise classified(error, "ecs: stopping a task", CleanupFailed) from error
            return False
        return True

    async def open_channel(self, arn: str, command: str) -> DataChannel:
        """A session in the task's container. Raises ``ExecFailed`` while the container's agent is not connected."""
        answer = await self._call(
            "opening a session",
            lambda: self._client.execute_command(
                cluster=self.options.cluster, task=arn, container=CONTAINER, command=command, interactive=True
            ),
            ExecFailed,
        )
        session = answer["session"]
        return await DataChannel.open(session["streamUrl"], session["tokenValue"], session["sessionId"])

    async def end_session(self, session: str) -> None:
        """Have the service end a session whose connection is lost. Raises ``ExecFailed``: also for a missing right."""
        await self._call("ending a session", lambda: self._ssm.terminate_session(SessionId=session), ExecFailed)
