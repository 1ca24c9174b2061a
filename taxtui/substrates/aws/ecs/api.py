"""Calls to ECS for sandboxes and the substrate, and the errors of these calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from taxtui.errors import CreateFailed, ExecFailed
from taxtui.sandboxes.kit.retry import StatePoller
from taxtui.substrates.aws.connection import AwsApi
from taxtui.substrates.aws.ecs import EcsOptions
from taxtui.substrates.aws.ecs.channel import DataChannel
from taxtui.substrates.aws.ecs.task import CONTAINER, TaskState, started_by
from taxtui.substrates.aws.failure import code_of

DESCRIBE_BATCH: Final = 100


class EcsApi(AwsApi[TaskState]):
    """The tasks of one cluster of one account and region."""

    services = ("ecs", "sts", "ssm")
    noun = "task"
    over = "STOPPED"

    def __init__(self, options: EcsOptions) -> None:
        super().__init__(options, StatePoller(self._describe, options.poll_s, DESCRIBE_BATCH))
        self.options = options

    async def run(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """RunTask's answer; an abandoned call's task is stopped. Raises ``CreateFailed``."""

        def dispose(answer: Mapping[str, Any]) -> None:
            for task in answer["tasks"]:
                self.discard(task["taskArn"])

        answer: Mapping[str, Any] = await self.call(
            "running a task", "run_task", CreateFailed, dispose=dispose, **request
        )
        return answer

    async def listed(self, run_id: str | None) -> list[str]:
        """The ARNs of the tasks of a run, or of all. Raises ``SubstrateUnavailable``."""
        return await self._in_thread("listing tasks", lambda: self._list(run_id))

    def _list(self, run_id: str | None) -> list[str]:
        chosen = {"startedBy": started_by(run_id)} if run_id is not None else {}
        pages = self._client.get_paginator("list_tasks").paginate(cluster=self.options.cluster, **chosen)
        return [str(arn) for page in pages for arn in page["taskArns"]]

    async def tasks(self, arns: list[str]) -> list[dict[str, Any]]:
        """At most ``DESCRIBE_BATCH`` tasks, described with their tags. Raises ``SubstrateUnavailable``."""
        answer = await self.call(
            "describing tasks", "describe_tasks", cluster=self.options.cluster, tasks=arns, include=["TAGS"]
        )
        return list(answer["tasks"])

    async def _describe(self, arns: list[str]) -> Mapping[str, TaskState]:
        return {task["taskArn"]: TaskState.of(task) for task in await self.tasks(arns)}

    def _end(self, handle: str) -> object:
        return self._client.stop_task(cluster=self.options.cluster, task=handle, reason="taxtui: done")

    def _unknown(self, error: Exception) -> bool:
        return code_of(error) == "InvalidParameterException" and "not found" in str(error)

    async def open_channel(self, arn: str, command: str) -> DataChannel:
        """A session in the task's container. Raises ``ExecFailed`` while the container's agent is not connected."""
        answer = await self.call(
            "opening a session",
            "execute_command",
            ExecFailed,
            cluster=self.options.cluster,
            task=arn,
            container=CONTAINER,
            command=command,
            interactive=True,
        )
        session = answer["session"]
        return await DataChannel.open(session["streamUrl"], session["tokenValue"], session["sessionId"])

    async def end_session(self, session: str) -> None:
        """Have the service end a session without connection. Raises ``ExecFailed``: also for a missing right."""
        await self._in_thread(
            "ending a session", lambda: self._clients["ssm"].terminate_session(SessionId=session), ExecFailed
        )
