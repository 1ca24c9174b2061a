"""Sandboxes on Amazon EC2: an instance per sandbox, commands over one SSH connection.

User data contains a host key per instance and the run's login key: the first connection is verified, and the account
keeps no key pair. ``exec`` mode opens a channel per command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple

import asyncssh
import msgspec

from taxtui.errors import CleanupFailed, CreateFailed, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.retry import find
from taxtui.sandboxes.lifecycle import reference_of
from taxtui.sandboxes.protocol import Availability, Effective, Found, Marks
from taxtui.substrates.aws import AwsOptions, Ec2Options
from taxtui.substrates.aws.connection import AwsState, AwsSubstrate, labelled
from taxtui.substrates.aws.ec2.instance import MachineImage, login, run_request, state_of, user_data
from taxtui.substrates.aws.ec2.sandbox import Ec2Sandbox
from taxtui.substrates.aws.failure import code_of

_ALIVE: Final = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
"""States in which an instance, or at least its volume, still costs money."""


class _Listing(NamedTuple):
    """A kind of resource: the operation and the keys of its answer."""

    operation: str
    items: str
    id: str
    born: str
    owner: Mapping[str, Any]


_INSTANCES: Final = _Listing("describe_instances", "Reservations", "InstanceId", "LaunchTime", {})
_IMAGES: Final = _Listing("describe_images", "Images", "ImageId", "CreationDate", {"Owners": ["self"]})
_SNAPSHOTS: Final = _Listing("describe_snapshots", "Snapshots", "SnapshotId", "StartTime", {"OwnerIds": ["self"]})


class Ec2Substrate(AwsSubstrate):
    """EC2 instances in one subnet."""

    name: ClassVar[str] = "ec2"
    Options: ClassVar[type[AwsOptions]] = Ec2Options
    services = ("ec2", "ssm", "sts")
    noun = "instance"
    over = "terminated"
    facts: ClassVar[dict[str, str]] = {**AwsSubstrate.facts, "asyncssh": asyncssh.__version__}
    capabilities = msgspec.structs.replace(
        AwsSubstrate.capabilities, lifecycle=("suspend", "snapshot"), suspend_loses=("processes", "sessions")
    )
    options: Ec2Options

    def __init__(self, options: Ec2Options | None = None) -> None:
        super().__init__(options or Ec2Options())
        self._login_key = new_key()  # for all instances; the private half stays here
        self._images: dict[str, MachineImage] = {}  # by id or parameter

    async def _checked(self, region: str) -> Availability:
        """By a dry run the missing rights."""
        image = await self._image()
        await self.call("looking up the subnet", "describe_subnets", SubnetIds=[self.options.subnet])
        spec = SandboxSpec(name="taxtui-check", labels={LABEL_RUN: "check"}, limits=Limits(), ttl_s=60)
        request = run_request(spec, self.options, image, user_data="")
        try:
            await self.call("trying run_instances", "run_instances", DryRun=True, **request)
        except SubstrateError as error:
            if code_of(error.__cause__) != "DryRunOperation":
                raise
        return Availability(
            ok=True,
            detail=f"{self.variant}; billed by the second, a minute at least, without a shipped price sheet: "
            "--prices FILE",
            version=self.options.instance_type,
            image=image.id,
            cache="cold",
            limits=f"the instance type's: {self.options.instance_type}",
            effective=await self._effective(),
        )

    async def _effective(self) -> Effective:
        """The instance type's size, and the network: a security group leaves outgoing connections open."""
        try:
            answer = await self.call(
                "looking up the instance type", "describe_instance_types", InstanceTypes=[self.options.instance_type]
            )
        except SubstrateError:  # an optional permission
            return Effective(network="full")
        (kind,) = answer["InstanceTypes"]
        return Effective(
            cpus=kind["VCpuInfo"]["DefaultVCpus"], memory_mib=kind["MemoryInfo"]["SizeInMiB"], network="full"
        )

    async def prepare(self, run_id: str, limits: Limits) -> None:
        """As ``Prepares.prepare``: look up the image."""
        await self._image()

    async def create(self, spec: SandboxSpec, marks: Marks) -> Ec2Sandbox:
        image = await self._image(reference_of(spec.acquire))
        keys = {"host_key": new_key(), "client_key": self._login_key}  # commands can read the instance's host key
        answer = await self.call(
            "running an instance",
            "run_instances",
            CreateFailed,
            dispose=lambda answer: self._discard(answer["Instances"][0]["InstanceId"]),
            **run_request(spec, self.options, image, user_data(spec, **keys)),
        )
        marks("accepted")
        instance = str(answer["Instances"][0]["InstanceId"])
        return Ec2Sandbox(self, spec, instance, login(self.options, **keys))

    async def _image(self, reference: str = "") -> MachineImage:
        """The run's own snapshot of a reference, else the option's image. Raises ``SubstrateUnavailable``."""
        for name in ("subnet", "security_group"):
            if not getattr(self.options, name):
                raise SubstrateUnavailable(f"ec2: option {name} is missing")
        if reference:  # with the root device of its origin
            return MachineImage(reference, (await self._image()).root_device)
        wanted = image_id = self.options.ami
        if wanted not in self._images:
            if wanted.startswith("/"):
                answer = await self.call(f"looking up {wanted}", "get_parameter", service="ssm", Name=wanted)
                image_id = str(answer["Parameter"]["Value"])
            images = (await self.call(f"looking up {image_id}", "describe_images", ImageIds=[image_id]))["Images"]
            if not images:
                raise SubstrateUnavailable(
                    f"ec2: there is no image {image_id} in this region", fix="choose another ami"
                )
            root = images[0].get("RootDeviceName", "/dev/xvda")
            for disk in images[0].get("BlockDeviceMappings", ()):
                name, ebs = disk["DeviceName"], disk.get("Ebs")
                # The request of an instance decides about the root disk.
                if ebs and name != root and not ebs.get("DeleteOnTermination"):
                    raise SubstrateUnavailable(
                        f"ec2: image {image_id} keeps its disk {name} after the instance",
                        fix="choose another ami",
                    )
            self._images[wanted] = MachineImage(image_id, root)
        return self._images[wanted]

    async def _left(self, run_id: str | None) -> list[Found]:
        """The instances and images of a run or of all, and snapshots without an image."""
        images = await self._listed(_IMAGES, run_id)
        names = {image.name for image in images}
        snapshots = [entry for entry in await self._listed(_SNAPSHOTS, run_id) if entry.name not in names]
        return [*await self._listed(_INSTANCES, run_id, _ALIVE), *images, *snapshots]

    async def _listed(self, kind: _Listing, run_id: str | None, *filters: Mapping[str, Any]) -> list[Found]:
        """The resources with taxtui's tags."""
        tagged = {"Name": "tag-key", "Values": [LABEL_RUN]}
        if run_id is not None:
            literal = re.sub(r"[*?\\]", r"\\\g<0>", run_id)  # a filter's wildcards
            tagged = {"Name": f"tag:{LABEL_RUN}", "Values": [literal]}
        answer = await self.call(
            "listing what a run has left", kind.operation, pages=True, Filters=[tagged, *filters], **kind.owner
        )
        items = answer.get(kind.items, [])
        if kind is _INSTANCES:
            items = [instance for reservation in items for instance in reservation["Instances"]]
        all_found = [
            labelled(item["Tags"], item[kind.id], datetime.fromisoformat(str(item[kind.born])).timestamp())
            for item in items
        ]
        return [entry for entry in all_found if entry is not None]

    async def reap(self, entry: Found) -> None:
        """Remove an instance, an image with its snapshots, or a snapshot alone. Raises ``CleanupFailed``."""
        if entry.handle.startswith("i-"):
            await super().reap(entry)
            return
        snapshots = [entry.handle]
        if entry.handle.startswith("ami-"):
            await self._delete(f"image {entry.handle}", "deregister_image", {"ImageId": entry.handle})
            try:
                listed = await find(lambda: self._listed(_SNAPSHOTS, entry.run_id))
            except SubstrateError as error:
                raise CleanupFailed(f"the snapshots of image {entry.handle} may still exist: {error}") from error
            snapshots = [snapshot.handle for snapshot in listed if snapshot.name == entry.name]
        for snapshot in snapshots:
            await self._delete(f"snapshot {snapshot}", "delete_snapshot", {"SnapshotId": snapshot})

    async def _described(self, instances: list[str]) -> Mapping[str, AwsState]:
        # By filter: a lookup by id is refused if EC2 does not know one of the instances yet.
        answer = await self.call(
            "describing instances", "describe_instances", Filters=[{"Name": "instance-id", "Values": instances}]
        )
        public = self.options.address == "public"
        return {
            item["InstanceId"]: state_of(item, public=public)
            for reservation in answer["Reservations"]
            for item in reservation["Instances"]
        }

    def _ending(self, handle: str) -> tuple[str, dict[str, Any]]:
        return "terminate_instances", {"InstanceIds": [handle]}

    def _unknown(self, error: BaseException | None) -> bool:
        return code_of(error).startswith(("InvalidInstanceID.NotFound", "InvalidAMIID", "InvalidSnapshot.NotFound"))


def new_key() -> asyncssh.SSHKey:
    """A fresh Ed25519 key."""
    return asyncssh.generate_private_key("ssh-ed25519", comment="taxtui")
