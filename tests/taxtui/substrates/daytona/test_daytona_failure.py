"""What Daytona's own words amount to: each row is what its API says, with why it means what it does."""

from __future__ import annotations

import json

import aiohttp
import pytest

from taxtui.errors import CreateFailed, ExecFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.substrates.daytona.failure import SandboxState, lost, refused, unanswered

KEY = "check DAYTONA_API_KEY and its permissions"
CPU = "Total CPU limit exceeded. Maximum allowed: 10."
TAKEN = "Sandbox with name x already exists"


@pytest.mark.parametrize(
    ("status", "message", "otherwise", "kind", "text"),
    [
        # A bad key, or one that may not make sandboxes: the set-up's fault while nothing has been made …
        (401, "Unauthorized", CreateFailed, SubstrateUnavailable, f"doing: Unauthorized (401); {KEY}"),
        (403, "Forbidden resource", CreateFailed, SubstrateUnavailable, f"doing: Forbidden resource (403); {KEY}"),
        # … and later only this request's.
        (401, "Unauthorized", ExecFailed, ExecFailed, "doing: Unauthorized (401)"),
        (403, "Forbidden resource", ExecFailed, ExecFailed, "doing: Forbidden resource (403)"),
        # What an organization may have comes under three codes; only the words tell it from a key that may not.
        (403, CPU, CreateFailed, QuotaExceeded, f"doing: {CPU} (403)"),
        (400, "Disk quota exceeded", CreateFailed, QuotaExceeded, "doing: Disk quota exceeded (400)"),
        (402, "Credit limit exceeded", CreateFailed, QuotaExceeded, "doing: Credit limit exceeded (402)"),
        # The same words in use are no quota's: there is a sandbox.
        (403, CPU, ExecFailed, ExecFailed, f"doing: {CPU} (403)"),
        # Too many requests in a minute, which passes; "limit exceeded" does not make a quota of it.
        (429, "Rate limit exceeded", CreateFailed, Throttled, "doing: Rate limit exceeded (429)"),
        (429, "Rate limit exceeded", ExecFailed, Throttled, "doing: Rate limit exceeded (429)"),
        (409, TAKEN, CreateFailed, CreateFailed, f"doing: {TAKEN} (409)"),
        (500, "oops\n twice", ExecFailed, ExecFailed, "doing: oops twice (500)"),
    ],
)
def test_a_refusal_becomes_one_of_our_errors(
    status: int, message: str, otherwise: type[SubstrateError], kind: type[SubstrateError], text: str
) -> None:
    error = refused(status, {}, json.dumps({"message": message})).as_error(otherwise, "doing")
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        # Named after what is limited; of several the longest counts.
        ({"Retry-After-sandbox-create": "3", "retry-after-authenticated": "5"}, 5.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_the_advice_is_found_under_any_of_its_names(headers: dict[str, str], after_s: float | None) -> None:
    error = refused(429, headers, "{}").as_error(CreateFailed, "create")
    assert isinstance(error, Throttled)
    assert error.retry_after_s == after_s


@pytest.mark.parametrize("body", ["<html>", "[]"])
def test_a_page_of_a_proxy_is_not_taken_for_an_answer(body: str) -> None:
    assert str(refused(502, {}, body)) == "HTTP 502 (502)"


def test_silence_is_told_by_its_kind_and_final_for_nobody() -> None:
    said = unanswered(aiohttp.ServerDisconnectedError("10.0.0.1"))  # the text can name hosts
    assert (str(said), said.final) == ("Daytona did not answer (ServerDisconnectedError)", False)
    assert type(said.as_error(CreateFailed, "create")) is CreateFailed


@pytest.mark.parametrize(
    ("state", "reason", "why"),
    [
        ("", "", ""),
        ("creating", "", ""),
        ("started", "", ""),
        ("building_snapshot", "", ""),
        # Stopped or archived by its own time to live, by Daytona or by somebody at the dashboard.
        ("stopped", "", "the sandbox is stopped"),
        ("archived", "idle", "the sandbox is archived: idle"),
        ("destroyed", "", "the sandbox is destroyed"),
        # Daytona's fault, or the image's: it may never have started.
        ("error", "no runner available", "the sandbox went to error: no runner available"),
        ("build_failed", "", "the sandbox went to build_failed: no reason given"),
    ],
)
def test_why_a_sandbox_is_lost(state: str, reason: str, why: str) -> None:
    assert lost(SandboxState(state, reason)) == why
