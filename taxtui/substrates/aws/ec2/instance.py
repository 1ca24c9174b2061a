"""EC2 instances as plain data: requests, and the meaning of the answers. Nothing is called here."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from taxtui.errors import CreateFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.refusal import is_named
from taxtui.substrates.aws.connection import tag_list
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted, redacted

_NEVER_STARTED: Final = ("VolumeLimitExceeded", "InternalError", "InvalidSnapshot")


def ended(status: str, code: str, reason: str) -> SubstrateError:
    """The error for an ending instance, by its state and the code and message of its ``StateReason``."""
    if "Spot" in code:  # Server.SpotInstanceTermination, Server.SpotInstanceShutdown
        return SpotInterrupted(f"AWS took the spot instance back ({code})", fix="use on-demand to avoid it")
    if "InsufficientInstanceCapacity" in code:  # accepted, and only then found to have no host
        return CapacityUnavailable("AWS has no capacity for this instance type here", fix="try another zone or type")
    if any(name in code for name in _NEVER_STARTED):  # accepted, but its volume could not be made
        return CreateFailed(f"the instance could not start: {code}: {reason}")
    return SandboxLost(f"the instance is {status}: {reason or code or 'no reason given'}")


def no_login(error: Exception) -> str:
    """The reason why logins fail. An unfinished cloud-init looks the same."""
    if is_named(error, "HostKeyNotVerifiable"):
        return "sshd shows another host key than the one in its user data; does the image have cloud-init?"
    if is_named(error, "PermissionDenied"):
        return "the login is refused; does the image have cloud-init, and did it make the user?"
    return f"no login: {str(error) or type(error).__name__}"


USER: Final = "taxtui"
"""The login: a new user with an empty home, because every command pays for a .bashrc."""

PER_BOOT: Final = "/var/lib/cloud/scripts/per-boot/taxtui-deadline"
TAGGED: Final = ("instance", "volume", "network-interface")
"""Resources of RunInstances, tagged in the same request, so that ``find`` lists each at any time."""


class KeyPair(NamedTuple):
    """In OpenSSH's text formats."""

    private: str
    public: str


def user_data(spec: SandboxSpec, *, host_key: KeyPair, client_public_key: str) -> str:
    """Cloud-init configuration: both keys, the user, and a shutdown by the guest itself; JSON is YAML too."""
    shutdown = ["shutdown", "-P", f"+{max(1, math.ceil(spec.ttl_s / 60))}"]
    config = {
        "ssh_deletekeys": True,
        # With keys given cloud-init makes none. To say so by an empty ssh_genkeytypes breaks its schema.
        "ssh_keys": {"ed25519_private": host_key.private, "ed25519_public": host_key.public},
        "ssh_pwauth": False,
        "disable_root": True,
        "package_update": False,
        "package_upgrade": False,
        "users": [
            {
                "name": USER,
                "shell": "/bin/bash",
                "lock_passwd": True,
                "no_create_home": False,
                "ssh_authorized_keys": [client_public_key],
            }
        ],
        # Whole minutes, rounded up. With InstanceInitiatedShutdownBehavior=terminate it ends the bill too.
        "runcmd": [shutdown],
        # A stop forgets the shutdown: cloud-init runs this script after every boot, also after a resume.
        "write_files": [
            {"path": PER_BOOT, "permissions": "0755", "content": f"#!/bin/sh\nexec {' '.join(shutdown)}\n"}
        ],
    }
    return f"#cloud-config\n{json.dumps(config, indent=1)}\n"


def run_request(
    spec: SandboxSpec,
    *,
    image_id: str,
    root_device: str,
    disk_gib: int,
    instance_type: str,
    subnet: str,
    security_group: str,
    public_address: bool,
    spot: bool,
    user_data: str,
) -> dict[str, Any]:
    """The request of RunInstances for one sandbox. Equal names give equal tokens: a repeat makes no second instance."""
    interface: dict[str, Any] = {
        "DeviceIndex": 0,
        "SubnetId": subnet,
        "Groups": [security_group],
        "AssociatePublicIpAddress": public_address,
        "DeleteOnTermination": True,
    }
    disk = {"VolumeSize": disk_gib, "VolumeType": "gp3", "DeleteOnTermination": True}
    request: dict[str, Any] = {
        "ImageId": image_id,
        "InstanceType": instance_type,
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": hashlib.sha256(spec.name.encode()).hexdigest(),
        "NetworkInterfaces": [interface],
        "InstanceInitiatedShutdownBehavior": "terminate",
        # Commands in the sandbox are an agent's: they must not get at the instance's role through a proxy.
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "BlockDeviceMappings": [{"DeviceName": root_device, "Ebs": disk}],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tag_list(spec.name, spec.labels)} for kind in TAGGED],
        "UserData": user_data,
    }
    if spot:
        request["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        }
    return request


class InstanceState(NamedTuple):
    """The used fields of a described instance."""

    status: str  # pending → running → shutting-down → terminated
    address: str  # "" before there is one
    code: str
    reason: str

    @classmethod
    def of(cls, instance: Mapping[str, Any], *, public: bool) -> InstanceState:
        """From an element of DescribeInstances."""
        reason = instance.get("StateReason", {})
        return cls(
            status=instance["State"]["Name"],
            address=instance.get("PublicIpAddress" if public else "PrivateIpAddress", ""),
            code=reason.get("Code", ""),
            reason=redacted(reason.get("Message", "")),
        )

    @property
    def ending(self) -> bool:
        """Whether the instance takes no more commands."""
        return self.status not in ("pending", "running")

    def failure(self) -> SubstrateError:
        """The error for an ending instance."""
        return ended(self.status, self.code, self.reason)
