"""Shared parts of the AWS adapters: clients and their calls, the endpoint's provenance, and tags."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import boto3
import botocore.config
import botocore.exceptions
import botocore.parsers

from taxtui.errors import SubstrateError, SubstrateUnavailable
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.removal import SETTLING_S
from taxtui.sandboxes.kit.retry import Retry, StatePoller
from taxtui.sandboxes.protocol import Found
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.failure import classified, code_of, redacted

T = TypeVar("T")

MAX_CALLS: Final = 256
"""Threads and connections of a substrate, so that calls of as many sandboxes do not queue in this process."""


SDK_ERRORS: Final = (
    botocore.exceptions.ClientError,
    botocore.exceptions.BotoCoreError,
    botocore.parsers.ResponseParserError,  # a proxy's page where AWS's answer should be
)
"""Every exception of a client for a refusal, a network error, or an unreadable answer."""


def open_clients(services: Sequence[str], options: AwsOptions) -> dict[str, Any]:
    """A client for each service, without retries of the SDK: a retry would hide in a latency. Blocks.

    All clients have one session, so that shared files are read once.

    Raises:
        SubstrateUnavailable: no region, no credentials, no such profile; the message names the first service.
    """
    config = botocore.config.Config(
        retries={"total_max_attempts": 1},
        connect_timeout=10,
        read_timeout=60,
        max_pool_connections=MAX_CALLS,
        tcp_keepalive=True,
    )
    try:
        session: Any = boto3.Session(profile_name=options.profile or None, region_name=options.region or None)
        if session.get_credentials() is None:
            fix = "run 'aws configure' or set AWS_PROFILE"
            raise SubstrateUnavailable(f"{services[0]}: no AWS credentials", fix=fix)
        url = options.endpoint_url or None
        return {service: session.client(service, endpoint_url=url, config=config) for service in services}
    except botocore.exceptions.BotoCoreError as error:
        raise SubstrateUnavailable(f"{services[0]}: {redacted(str(error))}") from error


def provenance(endpoint_url: str) -> Literal["measured", "stand_in"]:
    """``measured`` for AWS's own domains; any other endpoint is an emulator."""
    host = urlsplit(endpoint_url).hostname or ""
    is_aws = host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
    return "measured" if is_aws else "stand_in"


class AwsIdentity(NamedTuple):
    """Owner of the credentials, for people to read."""

    name: str  # "role ci-runner", "user ann"
    latency_ns: int  # of one warm call


def identify(client: Any) -> AwsIdentity:
    """The caller's identity by STS. The first of two calls opens the connection. Blocks; raises botocore's errors."""
    client.get_caller_identity()
    began = time.monotonic_ns()
    arn = str(client.get_caller_identity()["Arn"])
    kind, _, rest = arn.split(":", 5)[5].partition("/")
    return AwsIdentity(f"{kind.removeprefix('assumed-')} {rest.partition('/')[0]}".strip(), time.monotonic_ns() - began)


def tag_list(name: str, labels: Mapping[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """Labels as tags, with the displayed name; ECS spells ``key`` and ``value`` in lower case."""
    return [{key: k, value: v} for k, v in {"Name": name, **labels}.items()]


def labelled(tags: Sequence[Mapping[str, str]], handle: str, created_unix_s: float) -> Found | None:
    """The sandbox with these tags, or None for tags of another tool."""
    ours = {tag.get("Key", tag.get("key", "")): tag.get("Value", tag.get("value", "")) for tag in tags}
    if LABEL_RUN not in ours:
        return None
    return labels.found(ours, name=ours.get("Name", handle), handle=handle, age_s=time.time() - created_unix_s)


async def once_known(call: Callable[[], Awaitable[T]], unknown: str, *, first_s: float) -> T:
    """The answer about a new resource, requested again while AWS does not know the resource.

    ``unknown``: the code of this refusal, raised after ``removal.SETTLING_S``.
    """
    retry = Retry(
        first_s=first_s,
        within_s=SETTLING_S,
        on=lambda error: isinstance(error, SubstrateError) and code_of(error.__cause__) == unknown,
    )
    return await retry(call)


S = TypeVar("S")


class AwsApi(Generic[S]):
    """One account and region, with a client for each of ``services``; each call takes a thread of the pool."""

    services: ClassVar[tuple[str, ...]]
    """The first service provides the sandboxes and its name begins error messages; "sts" reports the identity."""

    def __init__(self, options: AwsOptions, poller: StatePoller[S]) -> None:
        self.poller = poller
        self._opened_with = options
        self._pool = BlockingPool(MAX_CALLS, self.services[0])
        self._clients: dict[str, Any] = {}

    async def open(self) -> None:
        opening = partial(open_clients, self.services, self._opened_with)
        self._clients = await self._pool.run(opening)

    async def close(self) -> None:
        await self.poller.close()
        await self._pool.__aexit__()

    @property
    def is_open(self) -> bool:
        return bool(self._clients)

    @property
    def region(self) -> str:
        return str(self._client.meta.region_name)

    @property
    def provenance(self) -> Literal["measured", "stand_in"]:
        return provenance(self._client.meta.endpoint_url)

    @property
    def _client(self) -> Any:
        return self._clients[self.services[0]]

    async def identity(self) -> AwsIdentity:
        """The identity behind the credentials. Raises ``SubstrateUnavailable``."""
        return await self._in_thread("looking up the identity", lambda: identify(self._clients["sts"]))

    async def call(
        self,
        doing: str,
        operation: str,
        otherwise: type[SubstrateError] = SubstrateUnavailable,
        *,
        dispose: Callable[[Any], object] | None = None,
        **parameters: Any,
    ) -> Any:
        """The answer of an operation of the first client. Raises as ``_in_thread``."""
        operate = getattr(self._client, operation)
        return await self._in_thread(doing, partial(operate, **parameters), otherwise, dispose)

    async def _in_thread(
        self,
        doing: str,
        call: Callable[[], T],
        otherwise: type[SubstrateError] = SubstrateUnavailable,
        dispose: Callable[[T], object] | None = None,
    ) -> T:
        """The result of ``call``. An SDK's exception becomes taxtui's error: ``otherwise`` if the table has none."""
        try:
            return await self._pool.run(call, dispose=dispose)
        except SDK_ERRORS as error:
            raise classified(error, f"{self.services[0]}: {doing}", otherwise) from error
