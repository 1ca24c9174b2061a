"""Snapshots of sandboxes. Daytona's snapshots have no labels: the name contains the run and the deadline."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Final

from daytona_api_client_async import SnapshotDto

from taxtui.errors import CreateFailed
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.protocol import Found
from taxtui.substrates.daytona.client import REQUEST_S, Clients, ask
from taxtui.substrates.daytona.failure import BROKEN, DaytonaRefused

NAMES: Final = "taxtui-"
"""The prefix of every name; Daytona filters by a part of a name, but not by a label with any value."""
HANDLE: Final = "snapshot:"
"""The beginning of a snapshot's handle; the handle of a sandbox is the id."""
PAGE: Final = 200
_NAME: Final = re.compile(rf"(?P<name>{NAMES}.+)\.run\.(?P<run>.+)\.until\.(?P<deadline>[0-9]*)")


def full_name(name: str, run_labels: Mapping[str, str]) -> str:
    """The name of a snapshot with these labels."""
    return f"{name}.run.{run_labels.get(LABEL_RUN, '')}.until.{run_labels.get(LABEL_DEADLINE, '')}"


async def active(clients: Clients, reference: str) -> SnapshotDto | None:
    """The snapshot if sandboxes can be created from it, else None. Raises ``CreateFailed``: the state is ``error``."""
    try:
        snapshot = await ask(clients.snapshots.get_snapshot(reference, _request_timeout=REQUEST_S))
    except DaytonaRefused as error:
        if error.status in (0, 404, 429):
            return None
        raise error.as_error(CreateFailed, "the snapshot can't be read") from error
    if snapshot.state.value in BROKEN:
        reason = snapshot.error_reason or "no reason given"
        raise CreateFailed(f"the snapshot went to {snapshot.state.value}: {reason}")
    return snapshot if snapshot.state.value == "active" else None


async def list_snapshots(clients: Clients, run_id: str | None) -> list[Found]:
    """The snapshots of a run's sandboxes, or of all runs. Raises ``DaytonaRefused``."""
    entries: list[Found] = []
    page = 1
    while True:
        snapshots = clients.snapshots
        answer = await ask(snapshots.get_all_snapshots(page=page, limit=PAGE, name=NAMES, _request_timeout=REQUEST_S))
        for item in answer.items:
            if match := _NAME.fullmatch(item.name):
                snapshot_labels = {LABEL_RUN: match["run"], LABEL_DEADLINE: match["deadline"]}
                age_s = time.time() - item.created_at.timestamp()
                entries.append(labels.found(snapshot_labels, name=match["name"], handle=HANDLE + item.id, age_s=age_s))
        if page >= answer.total_pages:
            return [entry for entry in entries if run_id in (None, entry.run_id)]
        page += 1
