"""Sandboxes on Amazon ECS: one task each, on Fargate or on container instances, commands through ECS Exec.

No plug-in binary is needed: ``ecs_channel.py`` speaks the sessions' protocol. ``exec`` mode opens a session per
command, as ``aws ecs execute-command`` does, and waits for its end, because a container takes only two at a time;
the agent alone needs 1 s before its first output. ``session`` mode keeps one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

import botocore

from costmodel.pricing import load_prices
from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.framed_shell import unbroken
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.aws.connection import MAX_CALLS, SDK_ERRORS, Poller, found, identify, open_client, provenance
from taxtui.substrates.aws.ecs.channel import DataChannel
from taxtui.substrates.aws.ecs.failure import not_started
from taxtui.substrates.aws.ecs.options import EcsOptions, listed
from taxtui.substrates.aws.ecs.sandbox import EcsSandbox
from taxtui.substrates.aws.ecs.task import CONTAINER, TaskState, definition, fargate_size, run_request, started_by
from taxtui.substrates.aws.failure import classified, code_of
from taxtui.substrates.aws.options import AwsOptions
from taxtui.substrates.aws.removal import insist, remove

T = TypeVar("T")

DESCRIBE_BATCH: Final = 100


class EcsSubstrate:
    """ECS tasks in one cluster."""

    name: ClassVar[str] = "ecs"
    Options: ClassVar[type[AwsOptions]] = EcsOptions

    def __init__(self, options: EcsOptions | None = None) -> None:
        """Nothing is opened yet."""
        self.options = options or EcsOptions()
        self.variant = self.options.variant
        self.provenance: Literal["measured", "stand_in"] = "stand_in" if self.options.endpoint_url else "measured"
        self.capabilities = Capabilities(
            paid=True, max_concurrency=MAX_CALLS, ready_resolution_ns=round(self.options.poll_s * 1e9)
        )
        self.poller = Poller(self._describe, self.options.poll_s, DESCRIBE_BATCH)
        self._pool = BlockingPool(MAX_CALLS, "ecs")
        self._client: Any = None
        self._sts: Any = None
        self._definitions: dict[str, str] = {}  # family → ARN
        self._registered: set[str] = set()  # by us, so that we take them away again
        self._registering = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Open clients. Raises ``SubstrateUnavailable``."""
        self._client = (await self._pool.run(lambda: open_client("ecs", self.options))).value
        self._sts = (await self._pool.run(lambda: open_client("sts", self.options))).value
        self.provenance = provenance(self._client.meta.endpoint_url)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Take away the task definitions that we registered; running tasks do not need them."""
        await self.poller.close()
        for arn in sorted(self._registered):
            with contextlib.suppress(SubstrateError):  # a definition costs nothing
                await self.call("deregistering", partial(self._client.deregister_task_definition, taskDefinition=arn))
        await self._pool.__aexit__(*exc)

    async def call(
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

    async def check(self) -> Availability:
        """As ``Substrate.check``: who we are, whether the cluster is there, and what is missing."""
        options = self.options
        if self._client is None:
            try:
                async with type(self)(options) as opened:
                    return await opened.check()
            except SubstrateError as error:
                return Availability(ok=False, detail=str(error), fix="aws sts get-caller-identity shows who you are")
        facts = {"boto3.botocore": botocore.__version__}
        region = str(self._client.meta.region_name)
        try:
            identity = await self.call("looking up the identity", lambda: identify(self._sts))
            answer = await self.call(
                "describing the cluster",
                lambda: self._client.describe_clusters(clusters=[options.cluster], include=["CONFIGURATIONS"]),
            )
            await self.call("listing tasks", lambda: self._client.list_tasks(cluster=options.cluster, maxResults=1))
        except SubstrateError as error:
            return Availability(
                ok=False, detail=str(error), fix="see the minimal policy in the README", region=region, facts=facts
            )
        who = f"{identity.name} in {region}"
        problem, fix = self._problem(answer.get("clusters", []))
        if problem:
            return Availability(ok=False, detail=f"{who}: {problem}", fix=fix, region=region, facts=facts)
        place = "Fargate Spot" if options.spot else "Fargate" if options.launch_type == "FARGATE" else "EC2"
        return Availability(
            ok=True,
            detail=f"ready as {who}, cluster {options.cluster} on {place}; {self._cost(region)}",
            version=f"{self.variant} {options.arch.lower()}",
            image=options.image,
            cache="cold" if options.launch_type == "FARGATE" else "unknown",  # Fargate keeps no images
            limits="as asked" if options.launch_type == "EC2" else "the next larger Fargate size",
            region=region,
            latency_ns=identity.latency_ns,
            facts=facts,
        )

    def _cost(self, region: str) -> str:
        """What a sandbox of the default limits costs, where a shipped price sheet knows."""
        if (self.options.launch_type, self.options.spot, region) != ("FARGATE", False, "us-east-1"):
            return "billed by the second, no price of it is shipped: --prices FILE"
        [price] = load_prices("aws-fargate").sandboxes
        size = fargate_size(Limits())
        usd = size.cpu_units / 1024 * price.usd_per_vcpu_hour + size.memory_mib / 1024 * price.usd_per_gib_hour
        return f"{usd:.3f} USD per sandbox-hour, {price.minimum_ns / 1e9:.0f} s at least: --prices aws-fargate"

    def _problem(self, clusters: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
        """What will not work, and how to change it; empty where nothing is known to be wrong."""
        options = self.options
        active = [cluster for cluster in clusters if cluster.get("status") == "ACTIVE"]
        if not active:
            return f"no active cluster {options.cluster!r}", f"aws ecs create-cluster --cluster-name {options.cluster}"
        if active[0].get("configuration", {}).get("executeCommandConfiguration", {}).get("kmsKeyId"):
            return (
                f"cluster {options.cluster} encrypts sessions with KMS, which taxtui does not speak",
                "remove kmsKeyId from its executeCommandConfiguration, or use another cluster",
            )
        if not options.task_role:
            return "option task_role is missing", "make a role that allows ssmmessages:* channels (README) and name it"
        if options.launch_type == "FARGATE" and not options.subnets:
            return "option subnets is missing", "aws ec2 describe-subnets lists them; join several with '+'"
        if options.launch_type == "EC2" and not active[0].get("registeredContainerInstancesCount"):
            return "the cluster has no container instances", "register one, or use launch_type=FARGATE"
        return "", ""

    async def create(self, spec: SandboxSpec, marks: Marks) -> EcsSandbox:
        """As ``Substrate.create``."""
        options = self.options
        request = run_request(
            spec,
            cluster=options.cluster,
            task_definition=await self._definition(spec),
            launch_type=options.launch_type,
            spot=options.spot,
            subnets=listed(options.subnets),
            security_groups=listed(options.security_groups),
            public_address=options.public_address,
        )
        answer = await self.call(
            "running a task",
            lambda: self._client.run_task(**request),
            CreateFailed,
            dispose=self._discard,
        )
        if not answer["tasks"]:
            raise not_started(answer.get("failures", []))
        marks("accepted")
        return EcsSandbox(self, spec.name, str(answer["tasks"][0]["taskArn"]))

    async def _definition(self, spec: SandboxSpec) -> str:
        """The ARN of a task definition that fits, registered on first use."""
        options = self.options
        wanted = definition(
            image=options.image,
            size=fargate_size(spec.limits),
            launch_type=options.launch_type,
            in_vpc=bool(options.subnets),
            task_role=options.task_role,
            execution_role=options.execution_role,
            arch=options.arch,
        )
        family = wanted["family"]
        async with self._registering:
            if family not in self._definitions:
                self._definitions[family] = await unbroken(self._register(wanted))
        return self._definitions[family]

    async def _register(self, wanted: Mapping[str, Any]) -> str:
        answer = await self.call(
            "registering a task definition", lambda: self._client.register_task_definition(**wanted), CreateFailed
        )
        arn = str(answer["taskDefinition"]["taskDefinitionArn"])
        self._registered.add(arn)
        return arn

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``. A task that ECS has been told to stop is not listed: nothing can hold it back."""
        arns = await self.call("listing tasks", lambda: self._list(run_id))
        described = [
            task
            for at in range(0, len(arns), DESCRIBE_BATCH)
            for task in await self._tasks(arns[at : at + DESCRIBE_BATCH])
        ]
        ours = [
            found(task.get("tags", []), task["taskArn"], task["createdAt"].timestamp())
            for task in described
            if task.get("lastStatus") != "STOPPED"
        ]
        return [each for each in ours if each is not None and run_id in (None, each.run_id)]

    def _list(self, run_id: str | None) -> list[str]:
        chosen = {"startedBy": started_by(run_id)} if run_id is not None else {}
        pages = self._client.get_paginator("list_tasks").paginate(cluster=self.options.cluster, **chosen)
        return [str(arn) for page in pages for arn in page["taskArns"]]

    async def _tasks(self, arns: list[str]) -> list[dict[str, Any]]:
        answer = await self.call(
            "describing tasks",
            lambda: self._client.describe_tasks(cluster=self.options.cluster, tasks=arns, include=["TAGS"]),
        )
        return list(answer["tasks"])

    async def _describe(self, arns: list[str]) -> Mapping[str, TaskState]:
        return {task["taskArn"]: TaskState.of(task) for task in await self._tasks(arns)}

    def _stop(self, arn: str) -> object:
        return self._client.stop_task(cluster=self.options.cluster, task=arn, reason="taxtui: done")

    def _discard(self, answer: Mapping[str, Any]) -> None:
        for task in answer["tasks"]:
            insist(partial(self._stop, task["taskArn"]))

    async def reap(self, found: Found) -> None:
        """As ``Substrate.reap``."""
        await self.remove(found.handle, time.monotonic() - found.age_s)

    async def remove(self, arn: str, launched_s: float) -> None:
        """Stop a task and wait until it has; throttling is waited out. Raises ``CleanupFailed``."""

        async def stopped() -> bool | None:
            state = (await self.poller.next(arn)).state
            return None if state is None else state.status == "STOPPED"

        await remove(
            f"task {arn.rpartition('/')[2]}",
            lambda: self._ask_to_stop(arn),
            stopped,
            poll_s=self.options.poll_s,
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
        answer = await self.call(
            "opening a session",
            lambda: self._client.execute_command(
                cluster=self.options.cluster, task=arn, container=CONTAINER, command=command, interactive=True
            ),
            ExecFailed,
        )
        return await DataChannel.open(answer["session"]["streamUrl"], answer["session"]["tokenValue"])
