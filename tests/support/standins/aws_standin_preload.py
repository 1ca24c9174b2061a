"""For the process that victims are forked from: all that they are made of, and megabytes of JSON, are read once.

A victim is then killed while it makes sandboxes, not while it reads. Nothing but that process imports this.
"""

from __future__ import annotations

import os

from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.connection import open_clients
from tests.support.standins import aws_standin_victim
from tests.support.standins.aws_setup import CREDENTIALS

__all__ = ["aws_standin_victim"]

os.environ.update(CREDENTIALS)
open_clients(["ec2", "ecs", "ssm", "sts"], AwsOptions())
