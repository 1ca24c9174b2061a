"""Calls to EC2 for sandboxes, their network and the substrate, and the errors of these calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from taxtui.errors import CleanupFailed, SubstrateError, SubstrateUnavailable
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.removal import remove
from taxtui.sandboxes.kit.retry import StatePoller
from taxtui.sandboxes.protocol import Found
from taxtui.substrates.aws.connection import AwsApi, labelled
from taxtui.substrates.aws.ec2 import Ec2Options
from taxtui.substrates.aws.ec2.instance import InstanceState
from taxtui.substrates.aws.failure import code_of

ALIVE: Final = ("pending", "running", "stopping", "stopped")
"""States in which an instance, or at least its volume, still costs money."""


def _literal(value: str) -> str:
    """A filter's value without wildcards: EC2 reads ``*`` and ``?`` as such."""
    return re.sub(r"[*?\\]", r"\\\g<0>", value)


class Ec2Api(AwsApi[InstanceState]):
    """The instances of one account and region, with their volumes and security groups."""

    services = ("ec2", "ssm", "sts")

    def __init__(self, options: Ec2Options) -> None:
        """Nothing is opened yet."""
        super().__init__(options, StatePoller(self._describe, options.poll_s))
        self.options = options
        self._image: tuple[str, str] | None = None  # id and root device

    async def image(self) -> tuple[str, str]:
        """The image's id and root device, looked up once. Raises ``SubstrateUnavailable``."""
        if self._image is None:
            image_id = self.options.ami
            if image_id.startswith("/"):
                answer = await self._in_thread(
                    f"looking up {image_id}", lambda: self._clients["ssm"].get_parameter(Name=self.options.ami)
                )
                image_id = str(answer["Parameter"]["Value"])
            images = (await self.call(f"looking up {image_id}", "describe_images", ImageIds=[image_id]))["Images"]
            if not images:
                raise SubstrateUnavailable(
                    f"ec2: there is no image {image_id} in this region", fix="choose another ami"
                )
            self._image = image_id, str(images[0].get("RootDeviceName", "/dev/xvda"))
        return self._image

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
        self, kind: Literal["instances", "volumes", "security_groups"], run_id: str | None, *filters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """All pages of resources with taxtui's tags; instances as reservations. Raises ``SubstrateUnavailable``."""
        every_run = {"Name": "tag-key", "Values": [LABEL_RUN]}
        ours = every_run if run_id is None else {"Name": f"tag:{LABEL_RUN}", "Values": [_literal(run_id)]}
        key = {"instances": "Reservations", "volumes": "Volumes", "security_groups": "SecurityGroups"}[kind]

        def pages() -> list[dict[str, Any]]:
            paginator = self._client.get_paginator(f"describe_{kind}")
            return [item for page in paginator.paginate(Filters=[ours, *filters]) for item in page[key]]

        return await self._in_thread(f"listing {kind.replace('_', ' ')}", pages)

    async def _describe(self, instances: list[str]) -> Mapping[str, InstanceState]:
        # By filter: asked by id, one that is not known yet would spoil the answer for all.
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
        """Blocks: request the end of an instance. Raises what botocore raises."""
        return self._client.terminate_instances(InstanceIds=[instance])

    async def delete(self, kind: str, handle: str, operation: str, gone: str, **parameters: Any) -> None:
        """Delete a resource that is gone once AWS has answered. Waits out throttling. Idempotent. Raises
        ``CleanupFailed``.
        """
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
        """Make a call that removes a resource; False if EC2 does not know the resource."""
        try:
            await self.call(doing, operation, CleanupFailed, **parameters)
        except SubstrateError as error:
            if code_of(error.__cause__) != unknown:
                raise
            return False
        return True
