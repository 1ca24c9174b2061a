"""Sandboxes on Amazon EC2: an instance per sandbox, commands over one SSH connection.

User data contains a host key per instance and the run's login key: the first connection is verified, and the account
keeps no key pair. ``exec`` mode opens a channel per command.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

import asyncssh
import botocore

from taxtui.errors import CreateFailed, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.refusal import check_opened
from taxtui.sandboxes.kit.removal import insist
from taxtui.sandboxes.lifecycle import reference_of
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.connection import MAX_CALLS, SDK_ERRORS, labelled, once_known
from taxtui.substrates.aws.ec2 import Ec2Options
from taxtui.substrates.aws.ec2.api import IMAGE, SNAPSHOT, Ec2Api
from taxtui.substrates.aws.ec2.instance import KeyPair, run_request, user_data
from taxtui.substrates.aws.ec2.network import UNKNOWN, Network
from taxtui.substrates.aws.ec2.sandbox import Ec2Sandbox, new_key
from taxtui.substrates.aws.failure import AccessDenied, code_of


class Ec2Substrate:
    """EC2 instances in one subnet."""

    name: ClassVar[str] = "ec2"
    Options: ClassVar[type[AwsOptions]] = Ec2Options

    def __init__(self, options: Ec2Options | None = None) -> None:
        self.options = options or Ec2Options()
        self.variant = self.options.variant
        self.provenance: Literal["measured", "stand_in"] = "stand_in" if self.options.endpoint_url else "measured"
        self.capabilities = Capabilities(
            deadline="guest",
            paid=True,
            max_concurrency=MAX_CALLS,
            lifecycle=("suspend", "snapshot"),
            suspend_loses=("processes", "sessions"),
        )
        self.api = Ec2Api(self.options)
        self._network = Network(self.api)
        self._preparing = asyncio.Lock()
        self._login: tuple[asyncssh.SSHKey, KeyPair] | None = None  # for all instances; the private half stays here

    async def __aenter__(self) -> Self:
        """Open clients. Raises ``SubstrateUnavailable``."""
        await self.api.open()
        self.provenance = self.api.provenance
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Remove the run's security group, unless instances still use the group."""
        await self._network.close()
        await self.api.close()

    # -- looking

    async def check(self) -> Availability:
        """As ``Substrate.check``: the identity, and by dry runs the missing resources and rights."""
        if not self.api.is_open:
            return await check_opened(type(self)(self.options), "aws sts get-caller-identity shows the identity")
        options, region = self.options, self.api.region
        facts = {"boto3.botocore": botocore.__version__, "asyncssh": asyncssh.__version__}
        problem, fix = options.problem
        if problem:
            return Availability(ok=False, detail=problem, fix=fix, region=region)
        try:
            identity = await self.api.identity()
            image_id, root_device = await self.api.image()
            await self._dry_runs(image_id, root_device)
        except SubstrateError as error:
            fix = "apply docs/substrates/paid.md's policy" if isinstance(error, AccessDenied) else "correct the option"
            return Availability.refused(error, fix, region=region, facts=facts)
        return Availability(
            ok=True,
            detail=f"ready as {identity.name!r} in {region}, {self.variant}; billed by the second, a minute at least, "
            "without a shipped price sheet: --prices FILE",
            version=options.instance_type,
            image=image_id,
            cache="cold",
            limits=f"the instance type's: {options.instance_type}",
            effective=await self._effective(),
            region=region,
            latency_ns=identity.latency_ns,
            facts=facts,
        )

    async def _effective(self) -> Effective:
        """The instance type's size, and the network: a security group leaves outgoing connections open."""
        try:
            answer = await self.api.call(
                "looking up the instance type", "describe_instance_types", InstanceTypes=[self.options.instance_type]
            )
        except SubstrateError:  # an optional permission
            return Effective(network="full")
        (kind,) = answer["InstanceTypes"]
        return Effective(
            cpus=kind["VCpuInfo"]["DefaultVCpus"], memory_mib=kind["MemoryInfo"]["SizeInMiB"], network="full"
        )

    async def _dry_runs(self, image_id: str, root_device: str) -> None:
        """Ask by dry runs whether each changing call would be allowed. Raises the error of the first refusal."""
        (subnet,) = (await self.api.call("looking up the subnet", "describe_subnets", SubnetIds=[self.options.subnet]))[
            "Subnets"
        ]
        spec = SandboxSpec(name="taxtui-check", labels={LABEL_RUN: "check"}, limits=Limits(), ttl_s=60)
        group = self.options.security_group or "sg-00000000"
        if not self.options.security_group:
            await self._dry_run(
                "create_security_group", GroupName="taxtui-check", Description="taxtui", VpcId=subnet["VpcId"]
            )
        request = run_request(
            spec, self.options, image_id=image_id, root_device=root_device, security_group=group, user_data=""
        )
        if not self.options.security_group:
            del request["NetworkInterfaces"][0]["Groups"]  # the new group does not exist yet
        await self._dry_run("run_instances", **request)
        await self.api.call("listing instances", "describe_instances", MaxResults=5)
        await self.api.call("listing volumes", "describe_volumes", MaxResults=5)
        await self.api.call("listing snapshots", "describe_snapshots", MaxResults=5, OwnerIds=["self"])
        await self.api.call("listing security groups", "describe_security_groups", MaxResults=5)

    async def _dry_run(self, operation: str, **parameters: Any) -> None:
        try:
            await self.api.call(f"trying {operation}", operation, DryRun=True, **parameters)
        except SubstrateError as error:
            if code_of(error.__cause__) != "DryRunOperation":
                raise

    # -- making

    async def prepare(self, run_id: str, limits: Limits) -> None:
        """As ``Prepares.prepare``: look up image and subnet, make the security group and the login key."""
        await self._prepared(run_id)

    async def _prepared(self, run_id: str) -> tuple[str, str, str, asyncssh.SSHKey, KeyPair]:
        """Image id, root device, security group and login key of a run's instances."""
        problem, fix = self.options.problem
        if problem:
            raise SubstrateUnavailable(f"ec2: {problem}", fix=fix)
        async with self._preparing:  # once for several concurrent creates
            image_id, root_device = await self.api.image()
            group = await finish_despite_cancel(self._network.group(run_id))
            if self._login is None:
                self._login = new_key()
        return image_id, root_device, group, *self._login

    async def create(self, spec: SandboxSpec, marks: Marks) -> Ec2Sandbox:
        reference = reference_of(spec.acquire)
        image_id, root_device, group, client_key, client_pair = await self._prepared(spec.labels[LABEL_RUN])
        if reference:
            image_id, root_device = await self.api.image(reference)
        host_key, host_pair = new_key()  # per instance: commands can read the host key
        request = run_request(
            spec,
            self.options,
            image_id=image_id,
            root_device=root_device,
            security_group=group,
            user_data=user_data(spec, host_key=host_pair, client_public_key=client_pair.public),
        )
        answer = await once_known(partial(self._run, request), UNKNOWN, first_s=self.options.poll_s)
        marks("accepted")
        instance = str(answer["Instances"][0]["InstanceId"])
        return Ec2Sandbox(self.api, spec.name, instance, spec.env, client_key, host_key)

    async def _run(self, request: Mapping[str, Any]) -> Any:
        return await self.api.call(
            "running an instance",
            "run_instances",
            CreateFailed,
            dispose=lambda answer: insist(
                partial(self.api.terminate, answer["Instances"][0]["InstanceId"]), SDK_ERRORS
            ),
            **request,
        )

    # -- finding and removing

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: instances, images, orphaned volumes and snapshots, unused security groups.

        An instance in the state shutting-down is not listed: the end is certain.
        """
        return await retry.find(partial(self._find, run_id))

    async def _find(self, run_id: str | None) -> Sequence[Found]:
        volumes = await self.api.tagged("volumes", run_id, {"Name": "status", "Values": ["available"]})
        listed = [
            *await self.api.instances(run_id),
            *(labelled(item["Tags"], item["VolumeId"], item["CreateTime"].timestamp()) for item in volumes),
        ]
        ours = [item for item in listed if item is not None]
        unused = await self._network.unused({item.run_id for item in ours}, run_id)
        return [*ours, *await self.api.copies(run_id), *unused]

    async def reap(self, entry: Found) -> None:
        if entry.handle.startswith("vol-"):
            await self.api.delete(
                "volume", entry.handle, "delete_volume", "InvalidVolume.NotFound", VolumeId=entry.handle
            )
        elif entry.handle.startswith((IMAGE, SNAPSHOT)):
            await self.api.remove_copy(entry)
        elif entry.handle.startswith("sg-"):
            await self._network.delete(entry.handle)
        else:
            await self.api.remove(entry.handle, time.monotonic() - entry.age_s)
