"""Sandboxes on Amazon EC2: one instance each, commands over one SSH connection to it.

Every instance gets a host key and a login key of its own through its user data, so that the first connection is
already verified, and no key pair is left in the account. ``exec`` mode opens a channel per command.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

import asyncssh
import botocore

from taxtui.errors import CleanupFailed, CreateFailed, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import LABEL_RUN, Limits, SandboxSpec
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.framed_shell import unbroken
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.aws.connection import MAX_CALLS, SDK_ERRORS, Poller, found, identify, open_client, provenance
from taxtui.substrates.aws.ec2.instance import InstanceState, run_request, user_data
from taxtui.substrates.aws.ec2.network import Network
from taxtui.substrates.aws.ec2.options import Ec2Options
from taxtui.substrates.aws.ec2.sandbox import Ec2Sandbox
from taxtui.substrates.aws.ec2.ssh import new_key
from taxtui.substrates.aws.failure import AccessDenied, classified, code_of
from taxtui.substrates.aws.options import AwsOptions
from taxtui.substrates.aws.removal import insist, remove

T = TypeVar("T")

ALIVE: Final = ("pending", "running", "stopping", "stopped")
"""States in which an instance, or at least its volume, costs money and goes on doing so."""


class Ec2Substrate:
    """EC2 instances in one subnet."""

    name: ClassVar[str] = "ec2"
    Options: ClassVar[type[AwsOptions]] = Ec2Options

    def __init__(self, options: Ec2Options | None = None) -> None:
        """Nothing is opened yet."""
        self.options = options or Ec2Options()
        self.variant = self.options.variant
        self.provenance: Literal["measured", "stand_in"] = "stand_in" if self.options.endpoint_url else "measured"
        self.capabilities = Capabilities(
            paid=True, max_concurrency=MAX_CALLS, ready_resolution_ns=round(self.options.poll_s * 1e9)
        )
        self.poller = Poller(self._describe, self.options.poll_s)
        self.network = Network(self)
        self._pool = BlockingPool(MAX_CALLS, "ec2")
        self._client: Any = None
        self._ssm: Any = None
        self._sts: Any = None
        self._image: tuple[str, str] | None = None  # id and root device
        self._preparing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Open clients. Raises ``SubstrateUnavailable``."""
        self._client = (await self._pool.run(lambda: open_client("ec2", self.options))).value
        self._ssm = (await self._pool.run(lambda: open_client("ssm", self.options))).value
        self._sts = (await self._pool.run(lambda: open_client("sts", self.options))).value
        self.provenance = provenance(self._client.meta.endpoint_url)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Remove the security group that was made for our instances, unless some of them are left."""
        await self.network.close()
        await self.poller.close()
        await self._pool.__aexit__(*exc)

    async def call(
        self,
        doing: str,
        operation: str,
        otherwise: type[SubstrateError] = SubstrateUnavailable,
        *,
        dispose: Callable[[Any], object] | None = None,
        **parameters: Any,
    ) -> Any:
        """One EC2 call in a thread; an SDK's exception becomes one of ours, ``otherwise`` where nothing fits better."""
        try:
            call = getattr(self._client, operation)
            return (await self._pool.run(lambda: call(**parameters), dispose=dispose)).value
        except SDK_ERRORS as error:
            raise classified(error, f"ec2: {doing}", otherwise) from error

    async def _in_thread(self, doing: str, call: Callable[[], T]) -> T:
        try:
            return (await self._pool.run(call)).value
        except SDK_ERRORS as error:
            raise classified(error, f"ec2: {doing}", SubstrateUnavailable) from error

    # -- looking

    async def check(self) -> Availability:
        """As ``Substrate.check``: who we are, and by dry runs what is missing or not allowed."""
        if self._client is None:
            try:
                async with type(self)(self.options) as opened:
                    return await opened.check()
            except SubstrateError as error:
                return Availability(ok=False, detail=str(error), fix="aws sts get-caller-identity shows who you are")
        options, region = self.options, str(self._client.meta.region_name)
        facts = {"boto3.botocore": botocore.__version__, "asyncssh": asyncssh.__version__}
        problem, fix = options.problem
        if problem:
            return Availability(ok=False, detail=problem, fix=fix, region=region)
        try:
            identity = await self._in_thread("looking up the identity", lambda: identify(self._sts))
            image_id, root_device = await self.image()
            await self._dry_runs(image_id, root_device)
        except SubstrateError as error:
            fix = "see the minimal policy in the README" if isinstance(error, AccessDenied) else "correct the option"
            return Availability(ok=False, detail=str(error), fix=fix, region=region, facts=facts)
        return Availability(
            ok=True,
            detail=f"ready as {identity.name} in {region}, {self.variant}; billed by the second, a minute at least, "
            "no price of it is shipped: --prices FILE",
            version=options.instance_type,
            image=image_id,
            cache="cold",
            limits=f"the instance type's: {options.instance_type}",
            region=region,
            latency_ns=identity.latency_ns,
            facts=facts,
        )

    async def _dry_runs(self, image_id: str, root_device: str) -> None:
        """Ask whether each call that changes something would be allowed. Raises what the first refusal means."""
        (subnet,) = (await self.call("looking up the subnet", "describe_subnets", SubnetIds=[self.options.subnet]))[
            "Subnets"
        ]
        spec = SandboxSpec(name="taxtui-check", labels={LABEL_RUN: "check"}, limits=Limits(), ttl_s=60)
        group = self.options.security_group
        if not group:
            await self._dry_run(
                "create_security_group", GroupName="taxtui-check", Description="taxtui", VpcId=subnet["VpcId"]
            )
        request = self._request(spec, image_id, root_device, group or "sg-00000000", "")
        if not group:
            del request["NetworkInterfaces"][0]["Groups"]  # the one that would be made does not exist yet
        await self._dry_run("run_instances", **request)
        await self.call("listing instances", "describe_instances", MaxResults=5)
        await self.call("listing volumes", "describe_volumes", MaxResults=5)
        await self.call("listing security groups", "describe_security_groups", MaxResults=5)

    async def _dry_run(self, operation: str, **parameters: Any) -> None:
        try:
            await self.call(f"trying {operation}", operation, DryRun=True, **parameters)
        except SubstrateError as error:
            if code_of(error.__cause__) != "DryRunOperation":
                raise

    async def image(self) -> tuple[str, str]:
        """The image's id and root device, looked up once. Raises ``SubstrateUnavailable``."""
        if self._image is None:
            image_id = self.options.ami
            if image_id.startswith("/"):
                answer = await self._in_thread(
                    f"looking up {image_id}", lambda: self._ssm.get_parameter(Name=self.options.ami)
                )
                image_id = str(answer["Parameter"]["Value"])
            images = (await self.call(f"looking up {image_id}", "describe_images", ImageIds=[image_id]))["Images"]
            if not images:
                raise SubstrateUnavailable(f"ec2: there is no image {image_id} in this region; choose another ami")
            self._image = image_id, str(images[0].get("RootDeviceName", "/dev/xvda"))
        return self._image

    # -- making

    async def create(self, spec: SandboxSpec, marks: Marks) -> Ec2Sandbox:
        """As ``Substrate.create``."""
        problem, fix = self.options.problem
        if problem:
            raise SubstrateUnavailable(f"ec2: {problem}; {fix}")
        async with self._preparing:  # of many at the same time the first one makes what all of them use
            image_id, root_device = await self.image()
            group = await unbroken(self.network.group(spec.labels[LABEL_RUN]))
        client_key, client_pair = new_key()
        host_key, host_pair = new_key()
        data = user_data(spec, host_key=host_pair, client_public_key=client_pair.public)
        answer = await self.call(
            "running an instance",
            "run_instances",
            CreateFailed,
            dispose=lambda answer: insist(partial(self._terminate, answer["Instances"][0]["InstanceId"])),
            **self._request(spec, image_id, root_device, group, data),
        )
        marks("accepted")
        instance = str(answer["Instances"][0]["InstanceId"])
        return Ec2Sandbox(self, spec.name, instance, spec.env, client_key, host_key)

    def _request(self, spec: SandboxSpec, image_id: str, root_device: str, group: str, data: str) -> dict[str, Any]:
        options = self.options
        return run_request(
            spec,
            image_id=image_id,
            root_device=root_device,
            disk_gib=options.disk_gib,
            instance_type=options.instance_type,
            subnet=options.subnet,
            security_group=group,
            public_address=options.address == "public",
            spot=options.spot,
            user_data=data,
        )

    # -- finding and removing

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: instances, volumes that outlived theirs, and security groups that nothing uses.

        An instance that is shutting down is not listed: nothing can hold it back.
        """
        volumes = await self.tagged("volumes", run_id, {"Name": "status", "Values": ["available"]})
        listed = [
            *await self.instances(run_id),
            *(found(each["Tags"], each["VolumeId"], each["CreateTime"].timestamp()) for each in volumes),
        ]
        ours = [each for each in listed if each is not None]
        return ours + await self.network.unused({each.run_id for each in ours}, run_id)

    async def instances(self, run_id: str | None) -> list[Found]:
        """The instances alone. Raises ``SubstrateUnavailable``."""
        alive = {"Name": "instance-state-name", "Values": list(ALIVE)}
        listed = [
            found(each["Tags"], each["InstanceId"], each["LaunchTime"].timestamp())
            for reservation in await self.tagged("instances", run_id, alive)
            for each in reservation["Instances"]
        ]
        return [each for each in listed if each is not None]

    async def tagged(
        self, what: Literal["instances", "volumes", "security_groups"], run_id: str | None, *filters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """All pages of what carries our tags; instances as reservations. Raises ``SubstrateUnavailable``."""
        ours = (
            {"Name": f"tag:{LABEL_RUN}", "Values": [run_id]} if run_id else {"Name": "tag-key", "Values": [LABEL_RUN]}
        )
        key = {"instances": "Reservations", "volumes": "Volumes", "security_groups": "SecurityGroups"}[what]

        def pages() -> list[dict[str, Any]]:
            paginator = self._client.get_paginator(f"describe_{what}")
            return [each for page in paginator.paginate(Filters=[ours, *filters]) for each in page[key]]

        return await self._in_thread(f"listing {what.replace('_', ' ')}", pages)

    async def _describe(self, instances: list[str]) -> Mapping[str, InstanceState]:
        # By filter: asked by id, one that is not known yet would spoil the answer for all.
        answer = await self.call(
            "describing instances", "describe_instances", Filters=[{"Name": "instance-id", "Values": instances}]
        )
        public = self.options.address == "public"
        return {
            each["InstanceId"]: InstanceState.of(each, public=public)
            for reservation in answer["Reservations"]
            for each in reservation["Instances"]
        }

    def _terminate(self, instance: str) -> object:
        return self._client.terminate_instances(InstanceIds=[instance])

    async def reap(self, found: Found) -> None:
        """As ``Substrate.reap``."""
        if found.handle.startswith("vol-"):
            await self.delete("volume", found.handle, "delete_volume", "InvalidVolume.NotFound", VolumeId=found.handle)
        elif found.handle.startswith("sg-"):
            await self.network.delete(found.handle)
        else:
            await self.remove(found.handle, time.monotonic() - found.age_s)

    async def delete(self, kind: str, handle: str, operation: str, gone: str, **parameters: Any) -> None:
        """Delete what is gone once AWS has answered; throttling is waited out. Idempotent. Raises ``CleanupFailed``."""
        await remove(
            f"{kind} {handle}",
            lambda: self._known(gone, f"deleting a {kind}", operation, **parameters),
            poll_s=self.options.poll_s,
        )

    async def remove(self, instance: str, launched_s: float) -> None:
        """Terminate an instance and wait until it is; throttling is waited out. Raises ``CleanupFailed``."""

        async def terminated() -> bool | None:
            state = (await self.poller.next(instance)).state
            return None if state is None else state.status == "terminated"

        await remove(
            f"instance {instance}",
            lambda: self._known(
                "InvalidInstanceID.NotFound", "terminating an instance", "terminate_instances", InstanceIds=[instance]
            ),
            terminated,
            poll_s=self.options.poll_s,
            launched_s=launched_s,
        )

    async def _known(self, unknown: str, doing: str, operation: str, **parameters: Any) -> bool:
        """Make a call that removes something; False where EC2 answers that it does not know it."""
        try:
            await self.call(doing, operation, CleanupFailed, **parameters)
        except SubstrateError as error:
            if code_of(error.__cause__) != unknown:
                raise
            return False
        return True
