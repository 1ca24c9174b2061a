"""What botocore reads to make a client, megabytes of JSON, read once in a process instead of once in each session."""

from __future__ import annotations

import functools

import botocore.loaders
import botocore.session

botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)
