"""Sandboxes on Amazon ECS: a task per sandbox on Fargate, commands through ECS Exec.

No plug-in binary is needed: ``channel.py`` has the sessions' protocol. ``exec`` mode opens a session per command, as
``aws ecs execute-command`` does, and waits for the end of the session, because a container takes only two sessions at
a time. The agent alone needs 1 s before the first output. ``session`` mode opens one session.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar

from taxtui.errors import CreateFailed, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.protocol import Availability, Effective, Found, Marks
from taxtui.substrates.aws import AwsOptions, EcsOptions
from taxtui.substrates.aws.connection import AwsState, AwsSubstrate, labelled
from taxtui.substrates.aws.ecs.sandbox import EcsSandbox
from taxtui.substrates.aws.ecs.task import definition, not_started, run_request, started_by, state_of
from taxtui.substrates.aws.failure import code_of


class EcsSubstrate(AwsSubstrate):
    """ECS tasks in one cluster."""

    name: ClassVar[str] = "ecs"
    Options: ClassVar[type[AwsOptions]] = EcsOptions
    services = ("ecs", "sts", "ssm")
    noun = "task"
    over = "STOPPED"
    options: EcsOptions

    def __init__(self, options: EcsOptions | None = None) -> None:
        super().__init__(options or EcsOptions())
        self._definitions: dict[str, str] = {}  # family → ARN; registered by this substrate, which deregisters them
        self._registering = asyncio.Lock()

    async def __aexit__(self, *exc: object) -> None:
        """Deregister this run's task definitions; running tasks continue."""
        for arn in self._definitions.values():
            with contextlib.suppress(SubstrateError):  # a definition costs nothing
                await self.call("deregistering", "deregister_task_definition", taskDefinition=arn)
        await super().__aexit__()

    async def _checked(self, region: str) -> Availability:
        options = self.options
        parameters: dict[str, Any] = {"clusters": [options.cluster], "include": ["CONFIGURATIONS"]}
        for name in ("task_role", "subnets"):
            if not getattr(options, name):
                raise SubstrateUnavailable(f"option {name} is missing")
        answer = await self.call("describing the cluster", "describe_clusters", **parameters)
        for cluster in answer.get("clusters", []):  # without this cluster the list of tasks is refused
            if cluster.get("configuration", {}).get("executeCommandConfiguration", {}).get("kmsKeyId"):
                raise SubstrateUnavailable(
                    f"cluster {options.cluster!r} encrypts sessions with KMS, unsupported by taxtui",
                    fix="remove kmsKeyId from executeCommandConfiguration, or use another cluster",
                )
            if options.spot and "FARGATE_SPOT" not in cluster.get("capacityProviders", []):
                raise SubstrateUnavailable(
                    f"cluster {options.cluster!r} has no capacity provider FARGATE_SPOT",
                    fix="add it: aws ecs put-cluster-capacity-providers",
                )
        place = "Fargate Spot" if options.spot else "Fargate"
        prices = "aws-fargate" if (options.spot, region) == (False, "us-east-1") else ""
        sheet = f"--prices {prices}" if prices else "without a shipped price sheet: --prices FILE"
        return Availability(
            ok=True,
            detail=f"cluster {options.cluster!r} on {place}; billed by the second, a minute at least, {sheet}",
            version=f"{self.variant} {options.arch.lower()}",
            image=options.image,
            cache="cold",  # Fargate keeps no images
            limits="the next larger Fargate size",
            effective=Effective(network="full", sizes="fargate"),
            prices=prices,
        )

    async def prepare(self, run_id: str, limits: Limits) -> None:
        """As ``Prepares.prepare``: register the task definition."""
        await self._definition(limits)

    async def create(self, spec: SandboxSpec, marks: Marks) -> EcsSandbox:
        definition_arn = await self._definition(spec.limits)
        answer = await self.call(
            "running a task",
            "run_task",
            CreateFailed,
            dispose=lambda answer: self._discard(*(task["taskArn"] for task in answer["tasks"])),
            **run_request(spec, self.options, definition_arn),
        )
        if not answer["tasks"]:
            raise not_started(answer.get("failures", []))
        marks("accepted")
        return EcsSandbox(self, spec.name, str(answer["tasks"][0]["taskArn"]))

    async def _definition(self, limits: Limits) -> str:
        """The ARN of a task definition for these limits, registered on first use."""
        request = definition(self.options, limits)
        family = request["family"]
        async with self._registering:
            if family not in self._definitions:
                await finish_despite_cancel(self._register(request))
        return self._definitions[family]

    async def _register(self, request: Mapping[str, Any]) -> None:
        doing, operation = "registering a task definition", "register_task_definition"
        answer = await self.call(doing, operation, CreateFailed, **request)
        self._definitions[request["family"]] = str(answer["taskDefinition"]["taskDefinitionArn"])

    async def _left(self, run_id: str | None) -> list[Found]:
        """The tasks of a run or of all, except stopped tasks. Raises ``SubstrateUnavailable``."""
        chosen: dict[str, Any] = {} if run_id is None else {"startedBy": started_by(run_id)}
        cluster = self.options.cluster
        answer = await self.call("listing tasks", "list_tasks", pages=True, cluster=cluster, **chosen)
        arns = answer.get("taskArns", [])
        batches = [arns[at : at + 100] for at in range(0, len(arns), 100)]
        ours = [
            labelled(task.get("tags", []), task["taskArn"], task["createdAt"].timestamp())
            for batch in batches
            for task in await self._tasks(batch)
            if task.get("lastStatus") != "STOPPED"
        ]
        return [entry for entry in ours if entry is not None and run_id in (None, entry.run_id)]

    async def _tasks(self, arns: list[str]) -> list[dict[str, Any]]:
        """At most 100 tasks, described with their tags. Raises ``SubstrateUnavailable``."""
        answer = await self.call(
            "describing tasks", "describe_tasks", cluster=self.options.cluster, tasks=arns, include=["TAGS"]
        )
        return list(answer["tasks"])

    async def _described(self, arns: list[str]) -> Mapping[str, AwsState]:
        return {task["taskArn"]: state_of(task) for task in await self._tasks(arns)}

    def _ending(self, handle: str) -> tuple[str, dict[str, Any]]:
        return "stop_task", {"cluster": self.options.cluster, "task": handle, "reason": "taxtui: done"}

    def _unknown(self, error: BaseException | None) -> bool:
        return code_of(error) == "InvalidParameterException" and "not found" in str(error)
