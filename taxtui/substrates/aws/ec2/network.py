"""The security group that opens the instances of a run to this machine only."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import socket
import time
import urllib.request
from collections.abc import Collection
from typing import Final

from taxtui.errors import CleanupFailed, CreateFailed, SubstrateError, SubstrateUnavailable
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.retry import Retry
from taxtui.sandboxes.protocol import Found
from taxtui.substrates.aws.connection import labelled, once_known, tag_list
from taxtui.substrates.aws.ec2.api import Ec2Api
from taxtui.substrates.aws.failure import code_of

CREATED: Final = "taxtui.created"
"""Tag: Unix seconds. EC2 does not report when a group was made."""

UNKNOWN: Final = "InvalidGroup.NotFound"
"""Also the answer about a new group from a part of EC2 without news of the group."""

ADDRESS_SERVICE: Final = "https://checkip.amazonaws.com"
DETACH_TIMEOUT_S: Final = 10.0
"""Wait for the network interface of a terminated instance to leave the group."""


class Network:
    """A group per run, made by ``prepare`` or the first create; or the group of the option, unchanged."""

    def __init__(self, api: Ec2Api) -> None:
        self._api = api
        self._groups: dict[str, str] = {}  # run → group
        self._reachable: set[str] = set()  # groups with an open port

    async def group(self, run_id: str) -> str:
        """The group for a run's instances. Raises ``CreateFailed`` and the errors of ``AwsRefused``."""
        options = self._api.options
        if options.security_group:
            return options.security_group
        if run_id not in self._groups:
            looked_up = await self._api.call("looking up the subnet", "describe_subnets", SubnetIds=[options.subnet])
            name = f"taxtui-{run_id}-{secrets.token_hex(4)}"
            ours = {LABEL_RUN: run_id, CREATED: str(int(time.time()))}
            answer = await self._api.call(
                "making a security group",
                "create_security_group",
                CreateFailed,
                GroupName=name,
                Description="taxtui: SSH from the measuring machine",
                VpcId=looked_up["Subnets"][0]["VpcId"],
                TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list(name, ours)}],
            )
            self._groups[run_id] = str(answer["GroupId"])
        group = self._groups[run_id]
        if group not in self._reachable:  # also after a refused request to open the group
            await self._open(group, await self._allowed())
            self._reachable.add(group)
        return group

    async def _open(self, group: str, allowed: str) -> None:
        version = ipaddress.ip_network(allowed).version
        key, field = ("IpRanges", "CidrIp") if version == 4 else ("Ipv6Ranges", "CidrIpv6")
        port = self._api.options.port
        rule = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, key: [{field: allowed}]}

        async def authorize() -> None:
            await self._api.call(
                "opening the security group",
                "authorize_security_group_ingress",
                CreateFailed,
                GroupId=group,
                IpPermissions=[rule],
            )

        try:
            await once_known(authorize, UNKNOWN, first_s=self._api.options.poll_s)
        except CreateFailed as error:
            if code_of(error.__cause__) != "InvalidPermission.Duplicate":  # opened by a request without an answer
                raise

    async def _allowed(self) -> str:
        """The CIDR for the group. Raises ``SubstrateUnavailable``."""
        options = self._api.options
        try:
            if options.allow_from:
                return str(ipaddress.ip_network(options.allow_from, strict=False))
            ask = _public_address if options.address == "public" else _private_address
            return str(ipaddress.ip_network(await asyncio.to_thread(ask)))
        except (OSError, ValueError) as error:
            raise SubstrateUnavailable(f"ec2: no address to admit ({error})", fix="set allow_from=CIDR") from error

    async def unused(self, busy: Collection[str], run_id: str | None) -> list[Found]:
        """Groups of runs without instances, except the groups of this open substrate."""
        groups = await self._api.tagged("security_groups", run_id)
        listed = [labelled(group["Tags"], group["GroupId"], _created(group["Tags"])) for group in groups]
        unused_groups = [
            group
            for group in listed
            if group is not None and group.run_id not in busy and group.handle not in self._groups.values()
        ]
        if not unused_groups:
            return []
        answer = await self._api.call(
            "listing network interfaces",
            "describe_network_interfaces",
            Filters=[{"Name": "group-id", "Values": [group.handle for group in unused_groups]}],
        )
        used = {group["GroupId"] for interface in answer["NetworkInterfaces"] for group in interface["Groups"]}
        return [group for group in unused_groups if group.handle not in used]

    async def delete(self, group: str) -> None:
        """Remove a group. Idempotent. Raises ``CleanupFailed``, also while an instance still uses it."""
        await self._api.delete("security group", group, "delete_security_group", UNKNOWN, GroupId=group)

    async def close(self) -> None:
        """Remove the groups of this substrate, except groups with instances: ``taxtui clean`` finds both."""
        for run_id, group in self._groups.items():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DETACH_TIMEOUT_S):
                    await self._leave(run_id, group)
        self._groups.clear()
        self._reachable.clear()

    async def _leave(self, run_id: str, group: str) -> None:
        while True:
            try:
                await self.delete(group)
            except CleanupFailed:
                if await self._in_use(run_id):
                    return
                await asyncio.sleep(self._api.options.poll_s)
            else:
                return

    async def _in_use(self, run_id: str) -> bool:
        with contextlib.suppress(SubstrateError):
            return bool(await Retry(first_s=self._api.options.poll_s)(lambda: self._api.instances(run_id)))
        return True


def _created(tags: Collection[dict[str, str]]) -> float:
    created_s = next((labels.unix_s(tag["Value"]) for tag in tags if tag["Key"] == CREATED), None)
    return time.time() if created_s is None else created_s


def _public_address() -> str:
    """Blocks."""
    with urllib.request.urlopen(ADDRESS_SERVICE, timeout=10) as answer:  # a constant https address
        return str(answer.read(100).decode("ascii").strip())


def _private_address() -> str:
    """Address of the interface of the default route; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
