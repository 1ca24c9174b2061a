"""Sandboxes on Amazon EC2: an instance per sandbox, commands over one SSH connection.

User data contains a host key per instance and the run's login key: the first connection is verified, and the account
keeps no key pair. ``exec`` mode opens a channel per command.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import asyncssh
import botocore

from taxtui.errors import CreateFailed, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.refusal import check_opened
from taxtui.sandboxes.lifecycle import reference_of
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.connection import MAX_CALLS
from taxtui.substrates.aws.ec2 import Ec2Options
from taxtui.substrates.aws.ec2.api import Ec2Api
from taxtui.substrates.aws.ec2.instance import run_request, user_data
from taxtui.substrates.aws.ec2.sandbox import Ec2Sandbox
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
        self._login_key = new_key()  # for all instances; the private half stays here

    async def __aenter__(self) -> Self:
        """Open clients. Raises ``SubstrateUnavailable``."""
        await self.api.open()
        self.provenance = self.api.provenance
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.api.close()

    async def check(self) -> Availability:
        """As ``Substrate.check``: the identity, and by a dry run the missing resources and rights."""
        if not self.api.is_open:
            return await check_opened(type(self)(self.options), "aws sts get-caller-identity shows the identity")
        options, region = self.options, self.api.region
        facts = {"boto3.botocore": botocore.__version__, "asyncssh": asyncssh.__version__}
        try:
            image_id, root_device = await self._image()
            owner, latency_ns = await self.api.identity()
            await self.api.call("looking up the subnet", "describe_subnets", SubnetIds=[options.subnet])
            await self._dry_run(image_id, root_device)
            await self.api.left("check")
        except SubstrateError as error:
            fix = "apply docs/substrates/paid.md's policy" if isinstance(error, AccessDenied) else "correct the option"
            return Availability.refused(error, fix, region=region, facts=facts)
        return Availability(
            ok=True,
            detail=f"ready as {owner!r} in {region}, {self.variant}; billed by the second, a minute at least, "
            "without a shipped price sheet: --prices FILE",
            version=options.instance_type,
            image=image_id,
            cache="cold",
            limits=f"the instance type's: {options.instance_type}",
            effective=await self._effective(),
            region=region,
            latency_ns=latency_ns,
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

    async def _dry_run(self, image_id: str, root_device: str) -> None:
        """Ask whether an instance could be made. Raises the refusal."""
        spec = SandboxSpec(name="taxtui-check", labels={LABEL_RUN: "check"}, limits=Limits(), ttl_s=60)
        request = run_request(spec, self.options, image_id=image_id, root_device=root_device, user_data="")
        try:
            await self.api.call("trying run_instances", "run_instances", DryRun=True, **request)
        except SubstrateError as error:
            if code_of(error.__cause__) != "DryRunOperation":
                raise

    async def prepare(self, run_id: str, limits: Limits) -> None:
        """As ``Prepares.prepare``: look up the image."""
        await self._image()

    async def _image(self, reference: str = "") -> tuple[str, str]:
        """Id and root device of an image, by default the option's. Raises ``SubstrateUnavailable``."""
        for name in ("subnet", "security_group"):
            if not getattr(self.options, name):
                raise SubstrateUnavailable(f"ec2: option {name} is missing", fix="see docs/substrates/paid.md")
        return await self.api.image(reference)

    async def create(self, spec: SandboxSpec, marks: Marks) -> Ec2Sandbox:
        image_id, root_device = await self._image(reference_of(spec.acquire))
        host_key = new_key()  # per instance: commands can read the host key
        request = run_request(
            spec,
            self.options,
            image_id=image_id,
            root_device=root_device,
            user_data=user_data(spec, host_key=host_key, client_key=self._login_key),
        )
        answer = await self.api.call(
            "running an instance",
            "run_instances",
            CreateFailed,
            dispose=lambda answer: self.api.discard(answer["Instances"][0]["InstanceId"]),
            **request,
        )
        marks("accepted")
        instance = str(answer["Instances"][0]["InstanceId"])
        return Ec2Sandbox(self.api, spec.name, instance, spec.env, self._login_key, host_key)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``. An instance in the state shutting-down is not listed: the end is certain."""
        return await retry.find(lambda: self.api.left(run_id))

    async def reap(self, entry: Found) -> None:
        if not entry.handle.startswith("i-"):
            await self.api.remove_copy(entry)
            return
        await self.api.remove(entry.handle, time.monotonic() - entry.age_s)


def new_key() -> asyncssh.SSHKey:
    """A fresh Ed25519 key."""
    return asyncssh.generate_private_key("ssh-ed25519", comment="taxtui")
