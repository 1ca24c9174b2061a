"""EC2 instances as plain data: requests, and the meaning of answers, without calls."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import asyncssh

from taxtui.errors import CreateFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import SandboxSpec
from taxtui.substrates.aws import Ec2Options
from taxtui.substrates.aws.connection import AwsState, tag_list
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted, redacted

_NEVER_STARTED: Final = ("VolumeLimitExceeded", "InternalError", "InvalidSnapshot")


def ended(status: str, code: str, reason: str) -> SubstrateError:
    """The error for an ending instance, by state, and code and message of the ``StateReason``."""
    if "Spot" in code:  # Server.SpotInstanceTermination, Server.SpotInstanceShutdown
        return SpotInterrupted(f"AWS took the spot instance back ({code})", fix="use on-demand instances")
    if "InsufficientInstanceCapacity" in code:  # found after the request was accepted
        return CapacityUnavailable("AWS has no capacity for this instance type here", fix="try another zone or type")
    if any(name in code for name in _NEVER_STARTED):  # accepted, but without a volume
        return CreateFailed(f"the instance could not start: {code}: {reason}")
    return SandboxLost(f"the instance is {status}: {reason or code or 'no reason given'}")


USER: Final = "taxtui"
"""The login: a new user with an empty home, because a .bashrc would delay every command."""

PER_BOOT: Final = "/var/lib/cloud/scripts/per-boot/taxtui-deadline"
TAGGED: Final = ("instance", "volume", "network-interface")
"""Resources that RunInstances tags in the same request: ``find`` lists each at any time."""


def public_text(key: asyncssh.SSHKey) -> str:
    """The public half of a key in OpenSSH's format."""
    return key.export_public_key().decode().strip()


def user_data(spec: SandboxSpec, *, host_key: asyncssh.SSHKey, client_key: asyncssh.SSHKey) -> str:
    """Cloud-init configuration: both keys, the user, and a shutdown by the guest itself; JSON is YAML too."""
    shutdown = ["shutdown", "-P", f"+{max(1, math.ceil(spec.ttl_s / 60))}"]
    config = {
        "ssh_deletekeys": True,
        # With these keys cloud-init makes no key. An empty ssh_genkeytypes would break cloud-init's schema.
        "ssh_keys": {
            "ed25519_private": host_key.export_private_key().decode(),
            "ed25519_public": public_text(host_key),
        },
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
                "ssh_authorized_keys": [public_text(client_key)],
            }
        ],
        # Whole minutes, rounded up. With InstanceInitiatedShutdownBehavior=terminate the bill ends too.
        "runcmd": [shutdown],
        # A stop forgets the shutdown: cloud-init runs this script after every boot, also after a resume.
        "write_files": [
            {"path": PER_BOOT, "permissions": "0755", "content": f"#!/bin/sh\nexec {' '.join(shutdown)}\n"}
        ],
    }
    return f"#cloud-config\n{json.dumps(config, indent=1)}\n"


def login(options: Ec2Options, *, host_key: asyncssh.SSHKey, client_key: asyncssh.SSHKey) -> dict[str, Any]:
    """The keywords of ``log_in``, for a host with this key only."""
    return {
        "port": options.port,
        "username": options.user or USER,
        "client_keys": [client_key],
        "known_hosts": ([host_key.convert_to_public()], [], []),
        "server_host_key_algs": ["ssh-ed25519"],
        "config": None,
        "agent_path": None,
        "preferred_auth": ["publickey"],
    }


class MachineImage(NamedTuple):
    """An image, and the name of the root disk."""

    id: str
    root_device: str


def run_request(spec: SandboxSpec, options: Ec2Options, image: MachineImage, user_data: str) -> dict[str, Any]:
    """The request of RunInstances for one sandbox. Equal names give equal tokens: a repeat makes no second instance."""
    interface: dict[str, Any] = {
        "DeviceIndex": 0,
        "SubnetId": options.subnet,
        "Groups": [options.security_group],
        "AssociatePublicIpAddress": options.address == "public",
        "DeleteOnTermination": True,
    }
    disk = {"VolumeSize": options.disk_gib, "VolumeType": "gp3", "DeleteOnTermination": True}
    request: dict[str, Any] = {
        "ImageId": image.id,
        "InstanceType": options.instance_type,
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": hashlib.sha256(spec.name.encode()).hexdigest(),
        "NetworkInterfaces": [interface],
        "InstanceInitiatedShutdownBehavior": "terminate",
        # Commands of an agent must not reach the instance's role through a proxy.
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "BlockDeviceMappings": [{"DeviceName": image.root_device, "Ebs": disk}],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tag_list(spec.name, spec.labels)} for kind in TAGGED],
        "UserData": user_data,
    }
    if options.spot:
        request["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        }
    return request


def state_of(instance: Mapping[str, Any], *, public: bool) -> AwsState:
    """The state in an element of DescribeInstances."""
    status = instance["State"]["Name"]  # pending → running → shutting-down → terminated
    reason = instance.get("StateReason", {})
    failure = ended(status, reason.get("Code", ""), redacted(reason.get("Message", "")))
    address = instance.get("PublicIpAddress" if public else "PrivateIpAddress", "")
    return AwsState(status, None if status in ("pending", "running") else failure, [status], address)
