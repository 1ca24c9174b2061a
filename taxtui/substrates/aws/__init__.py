"""Amazon Web Services: EC2 instances, ECS tasks, and their common options."""

from __future__ import annotations

import msgspec


class AwsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every AWS substrate. Credentials come from the AWS configuration."""

    region: str = ""  # else AWS_REGION or the profile's
    profile: str = ""
    endpoint_url: str = ""  # an emulator; its rows are marked as emulated
    poll_s: float = 1.0  # between two lookups of states, for all sandboxes in one call
