"""For the process that runs are forked from: what ``taxtui run`` imports until its first trial, read once.

Nothing but that process imports this.
"""

from __future__ import annotations

from taxtui import cli
from taxtui.commands import run, run_output
from taxtui.plan import scenario
from taxtui.runner import gc_tuning
from taxtui.runner import run as measuring
from taxtui.substrates.docker import substrate as docker
from taxtui.substrates.local import substrate as local
from taxtui.substrates.ssh import substrate as ssh
from taxtui.workloads import fixtures
from tests.support import forked_run

__all__ = ["cli", "docker", "fixtures", "forked_run", "gc_tuning", "local", "measuring", "run", "run_output"]
__all__ += ["scenario", "ssh"]
