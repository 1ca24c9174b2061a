"""Sandboxes on Amazon ECS: a task per sandbox on Fargate, commands through ECS Exec.

No plug-in binary is needed: ``channel.py`` has the sessions' protocol. ``exec`` mode opens a session per command, as
``aws ecs execute-command`` does, and waits for the end of the session, because a container takes only two sessions at
a time. The agent alone needs 1 s before the first output. ``session`` mode opens one session.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

import botocore

from taxtui.errors import CreateFailed, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.refusal import check_opened
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.connection import MAX_CALLS, labelled
from taxtui.substrates.aws.ecs import EcsOptions
from taxtui.substrates.aws.ecs.api import DESCRIBE_BATCH, EcsApi
from taxtui.substrates.aws.ecs.sandbox import EcsSandbox
from taxtui.substrates.aws.ecs.task import definition, not_started, run_request


class EcsSubstrate:
    """ECS tasks in one cluster."""

    name: ClassVar[str] = "ecs"
    Options: ClassVar[type[AwsOptions]] = EcsOptions

    def __init__(self, options: EcsOptions | None = None) -> None:
        self.options = options or EcsOptions()
        self.variant = self.options.variant
        self.provenance: Literal["measured", "stand_in"] = "stand_in" if self.options.endpoint_url else "measured"
        self.capabilities = Capabilities(deadline="guest", paid=True, max_concurrency=MAX_CALLS)
        self.api = EcsApi(self.options)
        self._definitions: dict[str, str] = {}  # family → ARN; registered by this substrate, which deregisters them
        self._registering = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.api.open()
        self.provenance = self.api.provenance
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Deregister this run's task definitions; running tasks continue."""
        for arn in self._definitions.values():
            with contextlib.suppress(SubstrateError):  # a definition costs nothing
                await self.api.call("deregistering", "deregister_task_definition", taskDefinition=arn)
        await self.api.close()

    async def check(self) -> Availability:
        """As ``Substrate.check``: the identity, the cluster, and the missing options."""
        options = self.options
        if not self.api.is_open:
            return await check_opened(type(self)(options), "aws sts get-caller-identity shows the identity")
        facts = {"boto3.botocore": botocore.__version__}
        region = self.api.region
        try:
            owner, latency_ns = await self.api.identity()
            answer = await self.api.call(
                "describing the cluster",
                "describe_clusters",
                clusters=[options.cluster],
                include=["CONFIGURATIONS"],
            )
            self._require(answer.get("clusters", []))
            await self.api.call("listing tasks", "list_tasks", cluster=options.cluster, maxResults=1)
        except SubstrateError as error:
            advice = "see roles and policy in docs/substrates/paid.md"
            return Availability.refused(error, advice, region=region, facts=facts)
        place = "Fargate Spot" if options.spot else "Fargate"
        prices = "aws-fargate" if (options.spot, region) == (False, "us-east-1") else ""
        sheet = f"--prices {prices}" if prices else "without a shipped price sheet: --prices FILE"
        return Availability(
            ok=True,
            detail=f"ready as {owner!r} in {region}, cluster {options.cluster!r} on {place}; billed by the second, "
            f"a minute at least, {sheet}",
            version=f"{self.variant} {options.arch.lower()}",
            image=options.image,
            cache="cold",  # Fargate keeps no images
            limits="the next larger Fargate size",
            effective=Effective(network="full", sizes="fargate"),
            region=region,
            latency_ns=latency_ns,
            prices=prices,
            facts=facts,
        )

    def _require(self, clusters: Sequence[Mapping[str, Any]]) -> None:
        """Raise ``SubstrateUnavailable`` for a missing option, and a cluster that cannot be used."""
        options = self.options
        active = [cluster for cluster in clusters if cluster.get("status") == "ACTIVE"]
        if not active:
            raise SubstrateUnavailable(
                f"no active cluster {options.cluster!r}", fix=f"aws ecs create-cluster --cluster-name {options.cluster}"
            )
        if active[0].get("configuration", {}).get("executeCommandConfiguration", {}).get("kmsKeyId"):
            raise SubstrateUnavailable(
                f"cluster {options.cluster!r} encrypts sessions with KMS, unsupported by taxtui",
                fix="remove kmsKeyId from executeCommandConfiguration, or use another cluster",
            )
        for name in ("task_role", "subnets"):
            if not getattr(options, name):
                raise SubstrateUnavailable(f"option {name} is missing")
        if options.spot and "FARGATE_SPOT" not in active[0].get("capacityProviders", []):
            raise SubstrateUnavailable(
                f"cluster {options.cluster!r} has no capacity provider FARGATE_SPOT",
                fix=f"aws ecs put-cluster-capacity-providers --cluster {options.cluster!r} --capacity-providers "
                "FARGATE FARGATE_SPOT --default-capacity-provider-strategy []",
            )

    async def prepare(self, run_id: str, limits: Limits) -> None:
        """As ``Prepares.prepare``: register the task definition."""
        await self._definition(limits)

    async def create(self, spec: SandboxSpec, marks: Marks) -> EcsSandbox:
        definition_arn = await self._definition(spec.limits)
        answer = await self.api.run(run_request(spec, self.options, definition_arn))
        if not answer["tasks"]:
            raise not_started(answer.get("failures", []))
        marks("accepted")
        return EcsSandbox(self.api, spec.name, str(answer["tasks"][0]["taskArn"]))

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
        answer = await self.api.call(doing, operation, CreateFailed, **request)
        self._definitions[request["family"]] = str(answer["taskDefinition"]["taskDefinitionArn"])

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``. A task with an accepted stop is not listed: the end is certain."""
        return await retry.find(partial(self._find, run_id))

    async def _find(self, run_id: str | None) -> Sequence[Found]:
        arns = await self.api.listed(run_id)
        described = [
            task
            for at in range(0, len(arns), DESCRIBE_BATCH)
            for task in await self.api.tasks(arns[at : at + DESCRIBE_BATCH])
        ]
        ours = [
            labelled(task.get("tags", []), task["taskArn"], task["createdAt"].timestamp())
            for task in described
            if task.get("lastStatus") != "STOPPED"
        ]
        return [entry for entry in ours if entry is not None and run_id in (None, entry.run_id)]

    async def reap(self, entry: Found) -> None:
        await self.api.remove(entry.handle, time.monotonic() - entry.age_s)
