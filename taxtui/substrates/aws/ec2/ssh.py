"""Logging in to an instance, with keys that were made for it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import asyncssh

from taxtui.sandboxes.kit.ssh_program import log_in
from taxtui.substrates.aws.ec2.instance import USER, KeyPair


def new_key() -> tuple[asyncssh.SSHKey, KeyPair]:
    """A fresh Ed25519 key, as an object and as text."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment="taxtui")
    return key, KeyPair(key.export_private_key().decode(), key.export_public_key().decode().strip())


async def connect(
    address: str, port: int, user: str, client_key: asyncssh.SSHKey, host_key: asyncssh.SSHKey
) -> asyncssh.SSHClientConnection:
    """Log in to the one host that holds ``host_key``. Raises as ``log_in``."""
    return await log_in(
        address,
        port=port,
        username=user or USER,
        client_keys=[client_key],
        known_hosts=([host_key.convert_to_public()], [], []),
        server_host_key_algs=["ssh-ed25519"],
        config=None,
        agent_path=None,
        preferred_auth=["publickey"],
    )


def remote_command(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """A line for the user's login shell that runs ``argv`` in the home directory."""
    variables = [f"{key}={value}" for key, value in env.items()]
    return f"cd && exec env {shlex.join([*variables, *argv])}"
