"""The two HTTP clients of Daytona's SDK, and their errors.

``AsyncDaytona`` is not used: ``create`` returns after the sandbox has started, so that a lost or cancelled create has
no handle. ``AsyncDaytona`` also does not report whether an event or a lookup showed the start.
"""

from __future__ import annotations

import asyncio
import copy
import math
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import aiohttp
import daytona_api_client_async as control
import daytona_toolbox_api_client_async as toolbox
from daytona_api_client_async.exceptions import OpenApiException as ControlError
from daytona_toolbox_api_client_async.exceptions import OpenApiException as ToolboxError

from taxtui.errors import CleanupFailed, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import labels, removal
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.kit.refusal import connecting, tell_cold
from taxtui.sandboxes.kit.retry import StatePoller
from taxtui.sandboxes.protocol import Found, Marks
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.failure import BROKEN, GONE, DaytonaRefused, SandboxState, refused, unanswered

T = TypeVar("T")

DEFAULT_URL: Final = "https://app.daytona.io/api"
STAND_IN_HEADER: Final = "X-Taxtui-Stand-In"
REQUEST_S: Final = 30.0
NAMES: Final = "taxtui-"
"""The prefix of every name; Daytona filters by a part of a name, but not by a label with any value."""
HANDLE: Final = "snapshot:"
"""The beginning of a snapshot's handle; the handle of a sandbox is the id."""
PAGE: Final = 200
POLL_S: Final = 0.1
"""Between two rounds of lookups of states."""
LOOKS_PER_S: Final = 50.0
"""Lookups of all sandboxes together: 3,000 requests a minute of the account's 10,000."""
_NAME: Final = re.compile(rf"(?P<name>{NAMES}.+)\.run\.(?P<run>.+)\.until\.(?P<deadline>[0-9]*)")
LOOK_S: Final = 0.2
"""Between the first two looks at a deletion."""


async def ask(
    method: Callable[..., Awaitable[T]],
    /,
    *given: object,
    timeout_s: float = REQUEST_S,
    marks: Marks | None = None,
    **named: object,
) -> T:
    """The answer of a generated client's method. Raises only ``DaytonaRefused``.

    ``marks``: of the sandbox that a new connection is for.
    """
    token = connecting.set(marks or connecting.get())
    try:
        return await method(*given, **named, _request_timeout=timeout_s)
    except (ControlError, ToolboxError) as error:
        status = getattr(error, "status", None)
        raise refused(status or 0, getattr(error, "headers", None) or {}, getattr(error, "body", None) or "") from error
    except (aiohttp.ClientError, OSError) as error:
        raise unanswered(error) from error
    except ValueError as error:  # pydantic's, for an answer against the schema
        raise DaytonaRefused(0, "", "Daytona's answer does not match its schema") from error
    finally:
        connecting.reset(token)


class Clients:
    """The control plane's and the toolbox's client over one connection pool, with SDK retries and limits off."""

    def __init__(self, options: DaytonaOptions) -> None:
        """Read the environment. Raises ``SubstrateUnavailable`` without a key."""
        key = os.environ.get("DAYTONA_API_KEY", "")
        if not key:
            raise SubstrateUnavailable("daytona: no key", fix="set DAYTONA_API_KEY (app.daytona.io, Keys)")
        url = (options.api_url or os.environ.get("DAYTONA_API_URL") or DEFAULT_URL).rstrip("/")
        self.target = options.target or os.environ.get("DAYTONA_TARGET") or None
        self.headers = {"Authorization": f"Bearer {key}"}
        self._control = control.ApiClient(control.Configuration(host=url))
        self._toolbox = toolbox.ApiClient(toolbox.Configuration(host=""))
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), trust_env=True, trace_configs=[tell_cold(aiohttp.TraceConfig())]
        )
        for client in (self._control, self._toolbox):
            client.default_headers |= self.headers
            client.rest_client.pool_manager = self.session
        self.sandboxes = control.SandboxApi(self._control)
        self.keys = control.ApiKeysApi(self._control)
        self.snapshots = control.SnapshotsApi(self._control)
        self.states = StatePoller(self._described, POLL_S, round(LOOKS_PER_S))

    def process(self, base_url: str) -> toolbox.ProcessApi:
        """The toolbox of a sandbox; ``base_url`` ends in the sandbox's id."""
        client = copy.copy(self._toolbox)  # a new client would load the certificate authorities again, 35 ms
        client.configuration = toolbox.Configuration(host=base_url)
        return toolbox.ProcessApi(client)

    async def _described(self, handles: list[str]) -> dict[str, SandboxState]:
        """The states of sandboxes by id, one request each: Daytona's list of sandboxes is eventually consistent."""
        get, problem = self.sandboxes.get_sandbox, "daytona: a state can't be looked up"
        await asyncio.sleep((len(handles) - 1) / LOOKS_PER_S)
        looks = (_if_known(get, handle, SubstrateUnavailable, problem) for handle in handles)
        found = zip(handles, await asyncio.gather(*looks), strict=True)
        return {handle: SandboxState.of(item) for handle, item in found if item is not None}

    async def find(self, run_id: str | None) -> list[Found]:
        """The sandboxes and snapshots of a run, or of all runs. Raises ``SubstrateUnavailable``, ``Throttled``."""
        try:
            entries = [*await _list_sandboxes(self.sandboxes), *await _list_snapshots(self.snapshots)]
        except DaytonaRefused as error:
            raise error.unless_final(SubstrateUnavailable, "daytona: sandboxes can't be listed") from error
        return [entry for entry in entries if run_id in (None, entry.run_id)]

    async def remove(self, name: str, handle: str) -> None:
        """Delete an entry of ``find`` in any state, and wait for the end. Raises ``CleanupFailed``."""
        snapshot = handle.startswith(HANDLE)
        delete: Any = self.snapshots.remove_snapshot if snapshot else self.sandboxes.delete_sandbox
        get: Any = self.snapshots.get_snapshot if snapshot else self.sandboxes.get_sandbox

        async def ask_to_delete() -> bool:
            await _if_known(delete, handle.removeprefix(HANDLE), CleanupFailed)
            return True

        async def ended() -> bool:
            answer = await _if_known(get, handle.removeprefix(HANDLE), CleanupFailed)
            if answer is None:
                return True
            state = answer.state.value if answer.state is not None else ""
            if state in BROKEN:
                raise Throttled(f"the state is {state} instead")
            return bool(state == GONE)

        stuck = "the deletion was accepted but has not ended; look at app.daytona.io"
        await removal.remove(
            f"{'snapshot' if snapshot else 'sandbox'} {name}", ask_to_delete, ended, look_s=LOOK_S, stuck=stuck
        )

    async def close(self) -> None:
        """Stop looking up states, and close the pool and all TLS connections."""
        await self.states.close()
        await self.session.close()
        await asyncio.sleep(0)


async def _if_known(
    method: Callable[[str], Awaitable[T]], handle: str, otherwise: type[SubstrateError], doing: str = ""
) -> T | None:
    """The answer of a method, or None if Daytona does not know the handle. Raises as ``Refused.unless_final``."""
    try:
        return await ask(method, handle)
    except DaytonaRefused as error:
        if error.status == 404:
            return None
        raise error.unless_final(otherwise, doing) from error


def minutes(seconds: float) -> int:
    """Daytona's unit of lifetimes, rounded up."""
    return max(1, math.ceil(seconds / 60))


def full_name(name: str, run_labels: Mapping[str, str]) -> str:
    """The name of a snapshot with these labels: Daytona's snapshots have none."""
    return f"{name}.run.{run_labels.get(LABEL_RUN, '')}.until.{run_labels.get(LABEL_DEADLINE, '')}"


async def _list_sandboxes(api: control.SandboxApi) -> list[Found]:
    entries: list[Found] = []
    cursor: str | None = None
    while True:
        page = await ask(api.list_sandboxes, name=NAMES, cursor=cursor, limit=PAGE)
        for item in page.items:
            if LABEL_RUN in item.labels and SandboxState.of(item).name != GONE:
                made_s = datetime.fromisoformat(item.created_at).timestamp() if item.created_at else time.time()
                age_s = time.time() - made_s
                entries.append(labels.found(item.labels, name=item.name, handle=item.id, age_s=age_s))
        cursor = page.next_cursor
        if not cursor:
            return entries


async def _list_snapshots(api: control.SnapshotsApi) -> list[Found]:
    entries: list[Found] = []
    page = 1
    while True:
        answer = await ask(api.get_all_snapshots, page=page, limit=PAGE, name=NAMES)
        for item in answer.items:
            if match := _NAME.fullmatch(item.name):
                snapshot_labels = {LABEL_RUN: match["run"], LABEL_DEADLINE: match["deadline"]}
                age_s = time.time() - item.created_at.timestamp()
                entries.append(labels.found(snapshot_labels, name=match["name"], handle=HANDLE + item.id, age_s=age_s))
        if page >= answer.total_pages:
            return entries
        page += 1
