"""Calls to EC2 for sandboxes, their images and the substrate, and the errors of these calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from taxtui.errors import CleanupFailed, CreateFailed, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.removal import remove
from taxtui.sandboxes.kit.retry import StatePoller, find
from taxtui.sandboxes.protocol import Found
from taxtui.substrates.aws.connection import AwsApi, labelled, tag_list
from taxtui.substrates.aws.ec2 import Ec2Options
from taxtui.substrates.aws.ec2.instance import InstanceState
from taxtui.substrates.aws.failure import code_of

ALIVE: Final = ("pending", "running", "stopping", "stopped")
"""States in which an instance, or at least its volume, still costs money."""
IMAGE: Final = "ami-"
"""The beginning of an image's id."""
_LISTS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "instances": ("Reservations", {}),
    "images": ("Images", {"Owners": ["self"]}),
    "snapshots": ("Snapshots", {"OwnerIds": ["self"]}),
}


def _literal(value: str) -> str:
    """A filter's value without wildcards, which are ``*`` and ``?``."""
    return re.sub(r"[*?\\]", r"\\\g<0>", value)


class Ec2Api(AwsApi[InstanceState]):
    """The instances and images of one account and region."""

    services = ("ec2", "ssm", "sts")
    noun = "instance"
    over = "terminated"

    def __init__(self, options: Ec2Options) -> None:
        super().__init__(options, StatePoller(self._describe, options.poll_s))
        self._image_poller = StatePoller(self._describe_images, options.poll_s)
        self.options = options
        self._images: dict[str, tuple[str, str]] = {}  # id and root device, by id or parameter

    async def close(self) -> None:
        await self._image_poller.close()
        await super().close()

    async def image(self, reference: str = "") -> tuple[str, str]:
        """The id and the root device of an image, by default the option's. Raises ``SubstrateUnavailable``."""
        wanted = image_id = reference or self.options.ami
        if wanted not in self._images:
            if wanted.startswith("/"):
                answer = await self._in_thread(
                    f"looking up {wanted}", lambda: self._clients["ssm"].get_parameter(Name=wanted)
                )
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
            self._images[wanted] = image_id, root
        return self._images[wanted]

    async def create_image(self, instance: str, name: str, labels: Mapping[str, str]) -> str:
        """Copy an instance's disk into an image without a reboot, and return the id of the available image.

        Raises ``CreateFailed``, and the errors of ``AwsRefused``.
        """
        tags = [{"ResourceType": kind, "Tags": tag_list(name, labels)} for kind in ("image", "snapshot")]
        about: dict[str, Any] = {"InstanceId": instance, "Name": name, "NoReboot": True, "TagSpecifications": tags}
        creating = self.call("creating an image", "create_image", CreateFailed, **about)
        image = str((await finish_despite_cancel(creating))["ImageId"])
        status: str | None = None
        while status in (None, "pending"):
            status = (await self._image_poller.next(image)).state
        if status != "available":
            raise CreateFailed(f"ec2: the image is {status}")
        self._images[image] = image, (await self.image())[1]  # a copy has the root device of its origin
        return image

    async def _describe_images(self, images: list[str]) -> Mapping[str, str]:
        # By filter: a lookup by id is refused while EC2 does not know the new image.
        by_id = {"Name": "image-id", "Values": images}
        answer = await self.call("looking up images", "describe_images", Filters=[by_id])
        return {item["ImageId"]: item["State"] for item in answer["Images"]}

    async def left(self, run_id: str | None) -> list[Found]:
        """The instances and images of a run or of all, and snapshots without an image.

        Raises ``SubstrateUnavailable``.
        """
        alive = {"Name": "instance-state-name", "Values": list(ALIVE)}
        instances = [
            labelled(item["Tags"], item["InstanceId"], item["LaunchTime"].timestamp())
            for reservation in await self._tagged("instances", run_id, alive)
            for item in reservation["Instances"]
        ]
        images = [
            labelled(item["Tags"], item["ImageId"], datetime.fromisoformat(item["CreationDate"]).timestamp())
            for item in await self._tagged("images", run_id)
        ]
        names = {item.name for item in images if item is not None}
        snapshots = [
            labelled(item["Tags"], item["SnapshotId"], item["StartTime"].timestamp())
            for item in await self._tagged("snapshots", run_id)
        ]
        orphans = (item for item in snapshots if item is not None and item.name not in names)
        return [*filter(None, instances), *filter(None, images), *orphans]

    async def _tagged(
        self, kind: Literal["instances", "images", "snapshots"], run_id: str | None, *filters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """All pages of resources with taxtui's tags; instances as reservations."""
        every_run = {"Name": "tag-key", "Values": [LABEL_RUN]}
        ours = every_run if run_id is None else {"Name": f"tag:{LABEL_RUN}", "Values": [_literal(run_id)]}
        key, owner = _LISTS[kind]

        def pages() -> list[dict[str, Any]]:
            answers = self._client.get_paginator(f"describe_{kind}").paginate(Filters=[ours, *filters], **owner)
            return [item for page in answers for item in page[key]]

        return await self._in_thread(f"listing {kind}", pages)

    async def remove_copy(self, entry: Found) -> None:
        """Delete an image and its snapshots, or a snapshot alone. Idempotent. Raises ``CleanupFailed``."""
        snapshots = [entry.handle]
        if entry.handle.startswith(IMAGE):
            await self._delete("image", entry.handle, "deregister_image", ImageId=entry.handle)
            by_name = {"Name": "tag:Name", "Values": [_literal(entry.name)]}
            try:
                listed = await find(lambda: self._tagged("snapshots", entry.run_id, by_name))
            except SubstrateError as error:
                raise CleanupFailed(f"the snapshots of image {entry.handle} may still exist: {error}") from error
            snapshots = [str(item["SnapshotId"]) for item in listed]
        for snapshot in snapshots:
            await self._delete("snapshot", snapshot, "delete_snapshot", SnapshotId=snapshot)

    async def _delete(self, kind: str, handle: str, operation: str, **parameters: Any) -> None:
        async def ask() -> bool:
            try:
                await self.call(f"deleting the {kind}", operation, CleanupFailed, **parameters)
            except SubstrateError as error:
                code = code_of(error.__cause__)
                if code == "InvalidSnapshot.InUse":  # the image was deregistered a moment ago
                    raise Throttled(str(error)) from error
                if not code.startswith(("InvalidAMIID", "InvalidSnapshot.NotFound")):
                    raise
                return False
            return True

        await remove(f"{kind} {handle}", ask, first_s=self.options.poll_s)

    async def _describe(self, instances: list[str]) -> Mapping[str, InstanceState]:
        # By filter: a lookup by id is refused if EC2 does not know one of the instances yet.
        answer = await self.call(
            "describing instances", "describe_instances", Filters=[{"Name": "instance-id", "Values": instances}]
        )
        public = self.options.address == "public"
        return {
            item["InstanceId"]: InstanceState.of(item, public=public)
            for reservation in answer["Reservations"]
            for item in reservation["Instances"]
        }

    def _end(self, handle: str) -> object:
        return self._client.terminate_instances(InstanceIds=[handle])

    def _unknown(self, error: Exception) -> bool:
        return code_of(error) == "InvalidInstanceID.NotFound"
