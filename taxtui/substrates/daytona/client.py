"""The two HTTP clients that daytona-sdk is made of, and what their refusals mean.

``AsyncDaytona`` itself is not used: its ``create`` returns only once the sandbox has started, so that a lost or
cancelled one has no handle, and it does not tell by which of its ways, events or polling, it saw the start.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import os
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Literal, TypeVar

import aiohttp
import daytona_api_client_async as control
import daytona_toolbox_api_client_async as toolbox
import msgspec
from daytona_api_client_async.exceptions import OpenApiException as ControlError
from daytona_toolbox_api_client_async.exceptions import OpenApiException as ToolboxError

from taxtui.errors import CreateFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled

T = TypeVar("T")

DEFAULT_URL: Final = "https://app.daytona.io/api"
STAND_IN_HEADER: Final = "X-Taxtui-Stand-In"
REQUEST_S: Final = 30.0

connecting: ContextVar[Any] = ContextVar("daytona_connecting", default=None)
"""The ``Marks`` of the sandbox whose request the current task is sending: told when it needed a new connection."""


class DaytonaOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which account, and what sandboxes are made of. The key is only read from DAYTONA_API_KEY."""

    api_url: str = ""  # else DAYTONA_API_URL, else Daytona's own
    target: str = ""  # the region: else DAYTONA_TARGET, else the organization's default
    snapshot: str = ""  # else the default one; a snapshot brings its own resources
    image: str = ""  # built on demand instead of a snapshot, with the resources that the run asks for
    disk_gib: int = 3  # with image
    user: str = ""  # the operating system's user
    fixtures: str = ""  # /opt/taxtui for a snapshot of taxtui's own image
    shell: Literal["bash", "sh"] = "bash"
    events: bool = True  # False: poll, as where the event socket can't be reached


class DaytonaRefused(Exception):
    """Daytona said no, in its own terms; ``status`` 0 when it said nothing. Never leaves the substrate."""

    def __init__(self, status: int, message: str, retry_after_s: float | None = None) -> None:
        """Keep the parts that decide what becomes of it."""
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def final(self) -> bool:
        """Asking again cannot help: a wrong key, or no permission."""
        return self.status in (401, 403)

    def __str__(self) -> str:
        """One line, with the HTTP status where there was one."""
        return f"{super().__str__()} ({self.status})" if self.status else super().__str__()

    def as_error(self, otherwise: type[SubstrateError], doing: str) -> SubstrateError:
        """The error of ours that it amounts to; before there is a sandbox, a bad key is the set-up's fault."""
        text = f"{doing}: {self}"
        if self.status == 429:
            return Throttled(text, self.retry_after_s)
        if otherwise is CreateFailed:
            if self.status in (400, 402, 403) and any(word in text.lower() for word in ("quota", "limit exceeded")):
                return QuotaExceeded(text)
            if self.final:
                return SubstrateUnavailable(text, fix="check DAYTONA_API_KEY and its permissions")
        return otherwise(text)


async def ask(request: Awaitable[T]) -> T:
    """The answer of a generated client's method. Raises ``DaytonaRefused`` and nothing else."""
    try:
        return await request
    except (ControlError, ToolboxError) as error:
        status = getattr(error, "status", None)
        raise refused(status or 0, getattr(error, "headers", None) or {}, getattr(error, "body", None) or "") from error
    except (aiohttp.ClientError, OSError) as error:
        raise unanswered(error) from error
    except ValueError as error:  # pydantic's, where an answer is not what the API's schema says
        raise DaytonaRefused(0, "Daytona's answer does not match its schema") from error


def refused(status: int, headers: Mapping[str, str], body: str) -> DaytonaRefused:
    """What an answer other than 2xx says."""
    try:
        said = json.loads(body)
        message = said.get("message") or said.get("error") or ""
    except (ValueError, AttributeError):
        message = ""
    # The header is named after what is limited: Retry-After-sandbox-create.
    after = [value for name, value in headers.items() if name.lower().startswith("retry-after")]
    waits = [float(value) for value in after if value.isdigit()]
    return DaytonaRefused(status, " ".join(str(message or f"HTTP {status}").split()), max(waits, default=None))


def unanswered(error: Exception) -> DaytonaRefused:
    """A request that no HTTP answer came back to; its text could name hosts, so only its kind is kept."""
    return DaytonaRefused(0, f"Daytona did not answer ({type(error).__name__})")


class Clients:
    """The control plane's and the toolbox's client over one connection pool, with SDK retries and limits off."""

    def __init__(self, options: DaytonaOptions) -> None:
        """Read the environment. Raises ``SubstrateUnavailable`` without a key."""
        key = os.environ.get("DAYTONA_API_KEY", "")
        if not key:
            raise SubstrateUnavailable("daytona: no key", fix="set DAYTONA_API_KEY (app.daytona.io, Keys)")
        self.url = (options.api_url or os.environ.get("DAYTONA_API_URL") or DEFAULT_URL).rstrip("/")
        self.target = options.target or os.environ.get("DAYTONA_TARGET") or None
        self.key = key
        self._control = control.ApiClient(control.Configuration(host=self.url))
        self._toolbox = toolbox.ApiClient(toolbox.Configuration(host=""))
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), trust_env=True, trace_configs=[_trace()]
        )
        for client in (self._control, self._toolbox):
            client.default_headers["Authorization"] = f"Bearer {key}"
            client.rest_client.pool_manager = self.session
        self.sandboxes = control.SandboxApi(self._control)
        self.keys = control.ApiKeysApi(self._control)
        self.organizations = control.OrganizationsApi(self._control)

    @property
    def headers(self) -> dict[str, str]:
        """What a websocket to the toolbox has to send."""
        return {"Authorization": f"Bearer {self.key}"}

    def process(self, base_url: str) -> toolbox.ProcessApi:
        """The toolbox of one sandbox; ``base_url`` ends in its id."""
        client = copy.copy(self._toolbox)  # a new one would load the certificate authorities again, 35 ms
        client.configuration = toolbox.Configuration(host=base_url)
        return toolbox.ProcessApi(client)

    async def close(self) -> None:
        """Close the pool, and let its TLS connections end."""
        await self.session.close()
        await asyncio.sleep(0)


def minutes(seconds: float) -> int:
    """Daytona's unit of lifetimes, rounded up."""
    return max(1, math.ceil(seconds / 60))


def _trace() -> aiohttp.TraceConfig:
    async def made(*_: object) -> None:
        if marks := connecting.get():
            marks.cold()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(made)
    return trace
