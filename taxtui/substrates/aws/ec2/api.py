"""Calls to EC2 for sandboxes, their network and the substrate, and the errors of these calls."""

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
from taxtui.substrates.aws.ec2.instance import ImageState, InstanceState
from taxtui.substrates.aws.failure import code_of

ALIVE: Final = ("pending", "running", "stopping", "stopped")
"""States in which an instance, or at least its volume, still costs money."""


IMAGE: Final = "ami-"
SNAPSHOT: Final = "snap-"
"""The beginnings of the ids of images and of disk snapshots."""
_OWNER: Final[Mapping[str, Any]] = {"images": {"Owners": ["self"]}, "snapshots": {"OwnerIds": ["self"]}}
_LISTS: Final = {
    "instances": "Reservations",
    "volumes": "Volumes",
    "security_groups": "SecurityGroups",
    "images": "Images",
    "snapshots": "Snapshots",
}


def _literal(value: str) -> str:
    """A filter's value without wildcards, which are ``*`` and ``?``."""
    return re.sub(r"[*?\\]", r"\\\g<0>", value)


class Ec2Api(AwsApi[InstanceState]):
    """The instances, volumes, images and security groups of one account and region."""

    services = ("ec2", "ssm", "sts")

    def __init__(self, options: Ec2Options) -> None:
        super().__init__(options, StatePoller(self._describe, options.poll_s))
        self._image_poller = StatePoller(self._describe_images, options.poll_s)
        self.options = options
        self._images: dict[str, tuple[str, str]] = {}  # id and root device, by id or parameter

    async def close(self) -> None:
        await self._image_poller.close()
        await super().close()

    async def image(self, image_id: str = "") -> tuple[str, str]:
        """The id and the root device of an image, by default the option's. Raises ``SubstrateUnavailable``."""
        wanted = image_id or self.options.ami
        if wanted not in self._images:
            image_id = wanted
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
            self._images[wanted] = image_id, ImageState.of(images[0]).root_device
        return self._images[wanted]

    async def create_image(self, instance: str, name: str, labels: Mapping[str, str]) -> str:
        """Copy an instance's disk into an image without a reboot, and return the id of the available image.

        Raises ``CreateFailed``, and the errors of ``AwsRefused``.
        """
        tags = [{"ResourceType": kind, "Tags": tag_list(name, labels)} for kind in ("image", "snapshot")]
        creating = self.call(
            "creating an image",
            "create_image",
            CreateFailed,
            InstanceId=instance,
            Name=name,
            NoReboot=True,
            TagSpecifications=tags,
        )
        image = str((await finish_despite_cancel(creating))["ImageId"])
        while True:
            state = (await self._image_poller.next(image)).state
            if state is None or state.status == "pending":
                continue
            if state.status != "available":
                raise CreateFailed(f"ec2: the image is {state.status}: {state.reason}")
            self._images[image] = image, state.root_device
            return image

    async def _describe_images(self, images: list[str]) -> Mapping[str, ImageState]:
        # By filter: a lookup by id is refused while EC2 does not know the new image.
        by_id = {"Name": "image-id", "Values": images}
        answer = await self.call("looking up images", "describe_images", Filters=[by_id])
        return {item["ImageId"]: ImageState.of(item) for item in answer["Images"]}

    async def copies(self, run_id: str | None) -> list[Found]:
        """The images of sandboxes, and snapshots without an image. Raises ``SubstrateUnavailable``."""
        images = [
            labelled(item["Tags"], item["ImageId"], datetime.fromisoformat(item["CreationDate"]).timestamp())
            for item in await self.tagged("images", run_id)
        ]
        names = {item.name for item in images if item is not None}
        snapshots = [
            labelled(item["Tags"], item["SnapshotId"], item["StartTime"].timestamp())
            for item in await self.tagged("snapshots", run_id)
        ]
        return [*filter(None, images), *(item for item in snapshots if item is not None and item.name not in names)]

    async def remove_copy(self, entry: Found) -> None:
        """Delete an image and its snapshots, or a snapshot alone. Idempotent. Raises ``CleanupFailed``."""
        snapshots = [entry.handle]
        if entry.handle.startswith(IMAGE):
            await self.delete("image", entry.handle, "deregister_image", "InvalidAMIID", ImageId=entry.handle)
            by_name = {"Name": "tag:Name", "Values": [_literal(entry.name)]}
            try:
                listed = await find(lambda: self.tagged("snapshots", entry.run_id, by_name))
            except SubstrateError as error:
                raise CleanupFailed(f"the snapshots of image {entry.handle} may still exist: {error}") from error
            snapshots = [str(item["SnapshotId"]) for item in listed]
        for snapshot in snapshots:
            await self.delete("snapshot", snapshot, "delete_snapshot", "InvalidSnapshot.NotFound", SnapshotId=snapshot)

    async def instances(self, run_id: str | None) -> list[Found]:
        """The instances alone. Raises ``SubstrateUnavailable``."""
        alive = {"Name": "instance-state-name", "Values": list(ALIVE)}
        listed = [
            labelled(item["Tags"], item["InstanceId"], item["LaunchTime"].timestamp())
            for reservation in await self.tagged("instances", run_id, alive)
            for item in reservation["Instances"]
        ]
        return [item for item in listed if item is not None]

    async def tagged(
        self,
        kind: Literal["instances", "volumes", "security_groups", "images", "snapshots"],
        run_id: str | None,
        *filters: Mapping[str, Any],
    ) -> list[dict[str, Any]]:
        """All pages of resources with taxtui's tags; instances as reservations. Raises ``SubstrateUnavailable``."""
        every_run = {"Name": "tag-key", "Values": [LABEL_RUN]}
        ours = every_run if run_id is None else {"Name": f"tag:{LABEL_RUN}", "Values": [_literal(run_id)]}

        def pages() -> list[dict[str, Any]]:
            paginator = self._client.get_paginator(f"describe_{kind}")
            answers = paginator.paginate(Filters=[ours, *filters], **_OWNER.get(kind, {}))
            return [item for page in answers for item in page[_LISTS[kind]]]

        return await self._in_thread(f"listing {kind.replace('_', ' ')}", pages)

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

    def terminate(self, instance: str) -> object:
        """Request the end of an instance. Blocks; raises botocore's errors."""
        return self._client.terminate_instances(InstanceIds=[instance])

    async def delete(self, kind: str, handle: str, operation: str, gone: str, **parameters: Any) -> None:
        """Delete a resource, gone after AWS's answer. Waits out throttling. Idempotent. Raises ``CleanupFailed``."""
        await remove(
            f"{kind} {handle}",
            lambda: self._removes(gone, f"deleting a {kind}", operation, **parameters),
            first_s=self.options.poll_s,
        )

    async def remove(self, instance: str, launched_s: float) -> None:
        """Terminate an instance and wait for its end. Waits out throttling. Raises ``CleanupFailed``."""

        async def terminated() -> bool | None:
            state = (await self.poller.next(instance)).state
            return None if state is None else state.status == "terminated"

        await remove(
            f"instance {instance}",
            lambda: self._removes(
                "InvalidInstanceID.NotFound", "terminating an instance", "terminate_instances", InstanceIds=[instance]
            ),
            terminated,
            look_s=0.0,
            first_s=self.options.poll_s,
            launched_s=launched_s,
        )

    async def _removes(self, unknown: str, doing: str, operation: str, **parameters: Any) -> bool:
        """Make a call to remove a resource; False if EC2 does not know the resource."""
        try:
            await self.call(doing, operation, CleanupFailed, **parameters)
        except SubstrateError as error:
            code = code_of(error.__cause__)
            if code == "InvalidSnapshot.InUse":  # the image was deregistered a moment ago
                raise Throttled(str(error)) from error
            if not code.startswith(unknown):
                raise
            return False
        return True
