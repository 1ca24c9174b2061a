"""Shared parts of the AWS adapters: clients and their calls, the endpoint's provenance, tags, and the substrate."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self
from urllib.parse import urlsplit

import boto3
import botocore
import botocore.config
import botocore.exceptions
import botocore.parsers
import msgspec

from taxtui.errors import CleanupFailed, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.sandboxes.kit import labels, retry
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.refusal import check_opened
from taxtui.sandboxes.kit.removal import insist, remove, settled
from taxtui.sandboxes.kit.retry import StatePoller
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.failure import classified, redacted

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


class AwsState(NamedTuple):
    """The used part of a described sandbox."""

    status: str
    failure: SubstrateError | None  # the reason why the sandbox takes no commands; None if it runs or may still start
    milestones: Sequence[str]  # that are reached
    address: str = ""


class AwsSubstrate(ABC):
    """A ``Substrate`` of one account and region: clients of ``services``, whose calls take threads of a pool."""

    Options: ClassVar[type[AwsOptions]]
    services: ClassVar[tuple[str, ...]]
    """The first service provides the sandboxes and its name begins error messages; "sts" reports the identity."""
    noun: ClassVar[str]
    over: ClassVar[str]
    """The status of an ended sandbox."""
    facts: ClassVar[dict[str, str]] = {"boto3.botocore": botocore.__version__}
    capabilities = Capabilities(deadline="guest", paid=True, max_concurrency=MAX_CALLS)

    def __init__(self, options: Any) -> None:
        self.options = options
        self.variant = str(options.variant)
        self.provenance: Literal["measured", "stand_in"] = "stand_in" if options.endpoint_url else "measured"
        self.poller = StatePoller(self._described, options.poll_s)
        self._pool = BlockingPool(MAX_CALLS, self.services[0])
        self._clients: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        """Open clients. Raises ``SubstrateUnavailable``."""
        self._clients = await self._pool.run(partial(open_clients, self.services, self.options))
        self.provenance = provenance(self._client.meta.endpoint_url)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.poller.close()
        await self._pool.__aexit__()

    @property
    def _client(self) -> Any:
        return self._clients[self.services[0]]

    # -- what a subclass knows

    @abstractmethod
    async def _checked(self, region: str) -> Availability:
        """The answer of ``check`` as far as specific; ``detail`` ends the sentence. Raises the reason against use."""

    @abstractmethod
    async def _described(self, handles: list[str]) -> Mapping[str, AwsState]:
        """The states of at most 100 sandboxes; unknown sandboxes are missing."""

    @abstractmethod
    async def _left(self, run_id: str | None) -> list[Found]:
        """The sandboxes of a run or of all, except those with a certain end. Raises ``SubstrateUnavailable``."""

    @abstractmethod
    def _ending(self, handle: str) -> tuple[str, dict[str, Any]]:
        """The operation to request the end of a sandbox, and the parameters."""

    @abstractmethod
    def _unknown(self, error: BaseException | None) -> bool:
        """Whether AWS does not know the sandbox of a request for the end."""

    # -- Substrate

    async def check(self) -> Availability:
        """As ``Substrate.check``: the identity, and the missing options, resources and rights."""
        if not self._clients:
            return await check_opened(type(self)(self.options), "aws sts get-caller-identity shows the identity")
        region = str(self._client.meta.region_name)
        try:
            owner, latency_ns = await self._identity()
            found = await self._checked(region)
            await self._left("check")
        except SubstrateError as error:
            advice = "see roles and policy in docs/substrates/paid.md"
            return Availability.refused(error, advice, region=region, facts=self.facts)
        detail = f"ready as {owner!r} in {region}, {found.detail}"
        return msgspec.structs.replace(found, detail=detail, region=region, latency_ns=latency_ns, facts=self.facts)

    async def _identity(self) -> tuple[str, int]:
        """The owner of the credentials for people to read, and the latency of a warm call in nanoseconds."""
        ask = partial(self.call, "looking up the identity", "get_caller_identity", service="sts")
        await ask()  # opens the connection
        began = time.monotonic_ns()
        kind, _, rest = str((await ask())["Arn"]).split(":", 5)[5].partition("/")
        return f"{kind.removeprefix('assumed-')} {rest.partition('/')[0]}".strip(), time.monotonic_ns() - began

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``. A sandbox with an accepted end is not listed: the end is certain."""
        return await retry.find(lambda: self._left(run_id))

    async def reap(self, entry: Found) -> None:
        """As ``Substrate.reap``."""
        await self.remove(entry.handle, time.monotonic() - entry.age_s)

    # -- for sandboxes

    async def call(
        self,
        doing: str,
        operation: str,
        otherwise: type[SubstrateError] = SubstrateUnavailable,
        *,
        service: str = "",
        pages: bool = False,
        dispose: Callable[[Any], object] | None = None,
        **parameters: Any,
    ) -> Any:
        """The answer of an operation of the first or another service, or all ``pages`` of the answer in one.

        An SDK's exception becomes taxtui's error: ``otherwise`` if the table has none.
        """
        client = self._clients[service] if service else self._client
        if pages:
            request = client.get_paginator(operation).paginate(**parameters).build_full_result
        else:
            request = partial(getattr(client, operation), **parameters)
        try:
            return await self._pool.run(request, dispose=dispose)
        except SDK_ERRORS as error:
            raise classified(error, f"{self.services[0]}: {doing}", otherwise) from error

    async def reached(
        self, handle: str, marks: Marks, milestone: str, *, passing: Collection[str] = ()
    ) -> tuple[AwsState, int]:
        """Record the milestones of a started sandbox until ``milestone``; the state, and the delay of its lookup.

        Lookups may not know an accepted sandbox yet; ``passing``: states before the start. Raises the sandbox's
        failure.
        """
        seen = {name for name, _, _ in marks.seen}
        while True:
            state, late_ns = await self.poller.next(handle)
            self.poller.report_throttling(marks)
            if state is None or state.status in passing:
                continue
            if state.failure is not None:
                raise state.failure
            for name in state.milestones:
                if name not in seen:
                    seen.add(name)
                    marks(name, resolution_ns=self.poller.interval_ns + late_ns)
            if milestone in state.milestones:
                return state, late_ns

    async def explained(self, handle: str, launched_s: float, error: SubstrateError) -> SubstrateError:
        """``error``, or the end of the sandbox as the cause."""
        seen = await self.poller.soon(handle)
        if seen is None:
            return error
        if seen.state is None:
            return SandboxLost(f"the {self.noun} no longer exists") if settled(launched_s) else error
        return seen.state.failure or error

    def _discard(self, *handles: str) -> None:
        """Request the end of a cancelled create's sandboxes. Blocks."""
        for operation, parameters in map(self._ending, handles):
            insist(partial(getattr(self._client, operation), **parameters), SDK_ERRORS)

    async def remove(self, handle: str, launched_s: float) -> None:
        """End a sandbox and wait for the end. Waits out throttling. Raises ``CleanupFailed``."""

        async def ended() -> bool | None:
            state = (await self.poller.next(handle)).state
            return None if state is None else state.status == self.over

        subject = f"{self.noun} {handle.rpartition('/')[2]}"
        await self._delete(subject, *self._ending(handle), ended=ended, launched_s=launched_s)

    async def _delete(
        self,
        subject: str,
        operation: str,
        parameters: Mapping[str, Any],
        *,
        ended: Callable[[], Awaitable[bool | None]] | None = None,
        launched_s: float = -math.inf,
    ) -> None:
        """Request an end until AWS accepts or knows no such subject. Raises ``CleanupFailed``. As ``kit.remove``."""

        async def ask() -> bool:
            try:
                await self.call(f"ending the {subject.partition(' ')[0]}", operation, CleanupFailed, **parameters)
            except SubstrateError as error:
                if self._unknown(error.__cause__):
                    return False
                raise
            return True

        first_s = self.poller.interval_ns / 1e9
        await remove(subject, ask, ended, look_s=0.0, first_s=first_s, launched_s=launched_s)
