"""The two HTTP clients of Daytona's SDK, and their errors.

``AsyncDaytona`` is not used: ``create`` returns after the sandbox has started, so that a lost or cancelled create has
no handle. ``AsyncDaytona`` also does not report whether an event or a lookup showed the start.
"""

from __future__ import annotations

import asyncio
import copy
import math
import os
from collections.abc import Awaitable
from typing import Final, TypeVar

import aiohttp
import daytona_api_client_async as control
import daytona_toolbox_api_client_async as toolbox
from daytona_api_client_async.exceptions import OpenApiException as ControlError
from daytona_toolbox_api_client_async.exceptions import OpenApiException as ToolboxError

from taxtui.errors import SubstrateUnavailable
from taxtui.sandboxes.kit.refusal import tell_cold
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.failure import refused, unanswered, unreadable

T = TypeVar("T")

DEFAULT_URL: Final = "https://app.daytona.io/api"
STAND_IN_HEADER: Final = "X-Taxtui-Stand-In"
REQUEST_S: Final = 30.0


async def ask(request: Awaitable[T]) -> T:
    """The answer of a generated client's method. Raises only ``DaytonaRefused``."""
    try:
        return await request
    except (ControlError, ToolboxError) as error:
        status = getattr(error, "status", None)
        raise refused(status or 0, getattr(error, "headers", None) or {}, getattr(error, "body", None) or "") from error
    except (aiohttp.ClientError, OSError) as error:
        raise unanswered(error) from error
    except ValueError as error:  # pydantic's, for an answer against the schema
        raise unreadable() from error


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
            connector=aiohttp.TCPConnector(limit=0), trust_env=True, trace_configs=[tell_cold(aiohttp.TraceConfig())]
        )
        for client in (self._control, self._toolbox):
            client.default_headers["Authorization"] = f"Bearer {key}"
            client.rest_client.pool_manager = self.session
        self.sandboxes = control.SandboxApi(self._control)
        self.keys = control.ApiKeysApi(self._control)
        self.snapshots = control.SnapshotsApi(self._control)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a websocket to the toolbox."""
        return {"Authorization": f"Bearer {self.key}"}

    def process(self, base_url: str) -> toolbox.ProcessApi:
        """The toolbox of a sandbox; ``base_url`` ends in the sandbox's id."""
        client = copy.copy(self._toolbox)  # a new client would load the certificate authorities again, 35 ms
        client.configuration = toolbox.Configuration(host=base_url)
        return toolbox.ProcessApi(client)

    async def close(self) -> None:
        """Close the pool and all TLS connections."""
        await self.session.close()
        await asyncio.sleep(0)


def minutes(seconds: float) -> int:
    """Daytona's unit of lifetimes, rounded up."""
    return max(1, math.ceil(seconds / 60))
