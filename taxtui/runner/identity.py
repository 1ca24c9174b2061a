"""Identity of a cell: the facts for pooling trials and comparing rows."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from costmodel import events
from taxtui import __version__
from taxtui.plan.spec import CellPlan, Plan, SubstrateRef
from taxtui.recording import digest
from taxtui.runner.redaction import SHOWN_OPTIONS
from taxtui.runner.trial.bracket import method_for
from taxtui.sandboxes.protocol import Availability, Substrate


def client_facts() -> dict[str, str]:
    """Return the facts of the measuring machine: CPU, cores, kernel and versions, without names and addresses."""
    return {
        "taxtui": __version__,
        "python": platform.python_version(),
        "msgspec": msgspec.__version__,
        "kernel": f"{platform.system()} {platform.release()}",
        "cpu": _cpu(),
        "cores": str(os.cpu_count() or 0),
        "arch": platform.machine(),
    }


def _cpu() -> str:
    if sys.platform == "linux":
        models = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if models:
            return str(models[0])
    return platform.processor() or platform.machine()


def host_digest() -> str:
    """Return a digest of this machine, without names."""
    machine_id = Path("/etc/machine-id")
    return digest("host", socket.gethostname(), machine_id.read_text() if os.access(machine_id, os.R_OK) else "")


def environment(client: Mapping[str, str]) -> str:
    """Return a digest, equal for clients of the same kind."""
    return digest(*(f"{key}={client[key]}" for key in ("taxtui", "python", "kernel", "cpu", "cores", "arch")))


def describe(plan: Plan) -> dict[str, Any]:
    """Return the plan for the header: enough to repeat the run, without names of accounts and paths."""
    return {
        "name": plan.name,
        "seed": plan.seed,
        "bracket": plan.bracket,
        "timeout_s": plan.timeout_s,
        "create_timeout_s": plan.create_timeout_s,
        "budget_s": plan.budget_s,
        **({"repeat": plan.repeat} if plan.repeat > 1 else {}),
        **({"workers": plan.workers} if plan.workers > 1 else {}),
        **({"lifecycle": list(plan.lifecycle)} if plan.lifecycle else {}),
        "limits": msgspec.to_builtins(plan.limits),
        "cells": [
            {
                "substrate": {"name": cell.substrate.name, "options": shown_options(cell.substrate)},
                "tier": {"name": cell.tier.name, "digest": cell.tier.digest},
                "actions": cell.actions,
                "mode": cell.mode,
                "concurrency": cell.concurrency,
                "arrival": str(cell.arrival),
                "think": str(cell.think),
                "acquire": cell.acquire,
                "trials": cell.trials,
                "warmup": plan.warm_ups(cell),
            }
            for cell in plan.cells
        ],
    }


def shown_options(ref: SubstrateRef) -> dict[str, str]:
    """Return a substrate's options, with a digest for each value not on the allow-list."""
    return {
        key: value if key in SHOWN_OPTIONS else f"sha256:{digest(value)}" for key, value in sorted(ref.options.items())
    }


def describe_cell(
    number: int, cell: CellPlan, plan: Plan, substrate: Substrate, availability: Availability, environment_digest: str
) -> events.Cell:
    """Return the description of a cell, with the effective limits and network of the sandboxes."""
    limits, network = availability.effective.limits(plan.limits), availability.effective.network
    return events.Cell(
        id=number,
        substrate=substrate.name,
        variant=substrate.variant,
        tier=cell.tier.name,
        tier_digest=cell.tier.digest,
        actions=cell.actions,
        mode=cell.mode,
        concurrency=cell.concurrency,
        arrival=str(cell.arrival),
        think=str(cell.think),
        acquire=cell.acquire,
        cache=availability.cache,
        cpu_milli=round(limits.cpus * 1000),
        memory_mib=limits.memory_mib,
        network=network or ("full" if cell.tier.network else "none"),
        image=availability.image,
        environment=environment_digest,
        substrate_version=" ".join(filter(None, [availability.version, availability.region])),
        cycle=len(cell.tier.cycle),
        bracket=method_for(bash=substrate.capabilities.bash, wanted=plan.bracket),
        bracket_cost_ns=events.UNKNOWN,
        preload="none" if not cell.tier.preload else "image" if availability.holds_fixtures else "trial",
        limits=availability.limits,
        provenance=substrate.provenance,
        capabilities=substrate.capabilities.flags(),
    )
