"""Amazon Web Services: EC2 instances, ECS tasks, and their common options."""

from __future__ import annotations

import msgspec


class AwsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every AWS substrate. The credentials are those of every AWS tool."""

    region: str = ""  # else AWS_REGION or the profile's
    profile: str = ""
    endpoint_url: str = ""  # a protocol stand-in; nothing that is measured there counts as AWS's
    poll_s: float = 1.0  # how often a state is looked up, for all sandboxes in one call
