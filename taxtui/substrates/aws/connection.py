"""Shared parts of the AWS adapters: clients and their calls, the endpoint's provenance, and tags."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

import boto3
import botocore.config
import botocore.exceptions
import botocore.parsers

from taxtui.errors import CleanupFailed, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.removal import insist, remove, settled
from taxtui.sandboxes.kit.retry import StatePoller
from taxtui.sandboxes.protocol import Found, Marks
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.failure import classified, redacted

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


def tag_list(name: str, labels: Mapping[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """Labels as tags, with the displayed name; ECS spells ``key`` and ``value`` in lower case."""
    return [{key: k, value: v} for k, v in {"Name": name, **labels}.items()]


def labelled(tags: Sequence[Mapping[str, str]], handle: str, created_unix_s: float) -> Found | None:
    """The sandbox with these tags, or None for tags of another tool."""
    ours = {tag.get("Key", tag.get("key", "")): tag.get("Value", tag.get("value", "")) for tag in tags}
    if LABEL_RUN not in ours:
        return None
    return labels.found(ours, name=ours.get("Name", handle), handle=handle, age_s=time.time() - created_unix_s)


class AwsState(Protocol):
    """A described sandbox."""

    @property
    def status(self) -> str: ...

    def failure(self) -> SubstrateError | None:
        """The reason why the sandbox takes no commands; None if the sandbox runs or may still start."""
        ...


S = TypeVar("S", bound=AwsState)


class AwsApi(ABC, Generic[S]):
    """One account and region, with a client for each of ``services``; each call takes a thread of the pool."""

    services: ClassVar[tuple[str, ...]]
    """The first service provides the sandboxes and its name begins error messages; "sts" reports the identity."""
    noun: ClassVar[str]
    over: ClassVar[str]
    """The status of an ended sandbox."""

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

    async def identity(self) -> tuple[str, int]:
        """The owner of the credentials for people to read, and the latency of a warm call in nanoseconds."""

        def identify() -> tuple[str, int]:
            client = self._clients["sts"]
            client.get_caller_identity()  # opens the connection
            began = time.monotonic_ns()
            arn = str(client.get_caller_identity()["Arn"])
            kind, _, rest = arn.split(":", 5)[5].partition("/")
            name = f"{kind.removeprefix('assumed-')} {rest.partition('/')[0]}".strip()
            return name, time.monotonic_ns() - began

        return await self._in_thread("looking up the identity", identify)

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

    async def next_state(
        self, handle: str, marks: Marks, known: Callable[[S], bool] = lambda state: True
    ) -> tuple[S, int]:
        """The next state of a started sandbox, and the delay of the lookup. Raises the sandbox's failure.

        ``known``: whether lookups know the start. They may not know an accepted sandbox yet.
        """
        state = None
        while state is None or not known(state):
            state, late_ns = await self.poller.next(handle)
            self.poller.report_throttling(marks)
        if (failure := state.failure()) is not None:
            raise failure
        return state, late_ns

    async def explained(self, handle: str, launched_s: float, error: SubstrateError) -> SubstrateError:
        """``error``, or the end of the sandbox as the cause."""
        seen = await self.poller.soon(handle)
        if seen is None:
            return error
        if seen.state is None:
            return SandboxLost(f"the {self.noun} no longer exists") if settled(launched_s) else error
        return seen.state.failure() or error

    @abstractmethod
    def _end(self, handle: str) -> object:
        """Request the end of a sandbox. Blocks; raises botocore's errors."""

    @abstractmethod
    def _unknown(self, error: Exception) -> bool:
        """Whether AWS does not know the sandbox of a request for the end."""

    def discard(self, handle: str) -> None:
        """Request the end of a cancelled create's sandbox. Blocks."""
        insist(lambda: self._end(handle), SDK_ERRORS)

    async def remove(self, handle: str, launched_s: float) -> None:
        """End a sandbox and wait for the end. Waits out throttling. Raises ``CleanupFailed``."""

        async def ask() -> bool:
            try:
                await self._pool.run(lambda: self._end(handle))
            except SDK_ERRORS as error:
                if self._unknown(error):
                    return False
                raise classified(error, f"{self.services[0]}: ending the {self.noun}", CleanupFailed) from error
            return True

        async def ended() -> bool | None:
            state = (await self.poller.next(handle)).state
            return None if state is None else state.status == self.over

        subject, first_s = f"{self.noun} {handle.rpartition('/')[2]}", self.poller.interval_ns / 1e9
        await remove(subject, ask, ended, look_s=0.0, first_s=first_s, launched_s=launched_s)
