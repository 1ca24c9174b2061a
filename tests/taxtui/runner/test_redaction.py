from __future__ import annotations

import re
from pathlib import Path

import pytest

from taxtui.errors import CreateFailed, located
from taxtui.plan.scenario import load_tier
from taxtui.plan.spec import CellPlan, Plan, SubstrateRef
from taxtui.runner import redaction
from taxtui.runner.redaction import hide_names_of, redact, scrub

SECRETS = [  # addresses, paths and ids, hosts, clusters, registries, users, secrets
    *("https://api.example.com/v1?key=abc", "jsmith@buildhost", "someone@example.com", "10.1.2.3:6443", "10.20.0.0/16"),
    *("arn:aws:iam::123456789012:role/admin", "fe80::1ff:fe23:4567:890a", "/home/someone/.kube/config"),
    *("~/.aws/credentials", "123456789012", "AKIAIOSFODNN7EXAMPLE", "4f2ac1", "i-0abc12"),
    *("ip-10-1-2-3.eu-west-1.compute.internal", "gpu07", "jsmiths-macbook.local", "registry.example.com:5000"),
    *("payments-prod", "pr-1234-jsmith", "ghcr.io/acme/agent:latest", "build.internal", "team/agent"),
    *("DOMAIN\\jsmith", "nobody2", "password=hunter2", "password: hunter2", "api_key=hunter2", "token=abc"),
    *("sk-ant-x", "ghp_abc", "Authorization: hunter2", "AWS_SECRET_ACCESS_KEY=wJalr", "hunter2"),
]
PLAIN = ["acmecorp", "AcmeResearch", "jsmith:staff"]
"""Names of one plain word."""


def plan_with(options: dict[str, str], acquire: str = "create") -> Plan:
    ref = SubstrateRef(name="kubernetes", options=options)
    cell = CellPlan(substrate=ref, tier=load_tier("T0"), actions=1, mode="exec", trials=1, acquire=acquire)
    return Plan(cells=(cell,))


@pytest.fixture(autouse=True)
def _no_hidden_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_names", set())


@pytest.mark.parametrize("secret", SECRETS)
def test_what_could_name_a_person_a_machine_or_an_account_is_replaced(secret: str) -> None:
    for before, after in (("", ""), ("'", "'"), ('"', '"'), ("(", ")"), ("", ",")):
        said = scrub(f"no permission for {before}{secret}{after} in this place")
        assert secret not in said
        assert "hunter2" not in said
        assert "jsmith" not in said.lower()
        assert "acme" not in said.lower()
        assert said.startswith("no permission for ")
        assert said.endswith("in this place")


@pytest.mark.parametrize("secret", PLAIN)
def test_a_plain_name_is_replaced_where_it_is_quoted(secret: str) -> None:
    for before, after in (("'", "'"), ('"', '"'), ("“", "”"), ('"of ', ' there"'), ("{key: ", "}"), ('"', "")):
        assert secret not in scrub(f"no permission for {before}{secret}{after}")
    assert scrub(f'pods \\"{secret}\\" and "a \\"{secret}\\" b" end').endswith('"<name>" end')


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Permission denied for user jsmith on host buildhost", "Permission denied for user <name> on host <name>"),
        ("Could not resolve hostname buildhost: no answer", "Could not resolve hostname <name>: no answer"),
        ("network acmenet not found", "network <name> not found"),
        ("No such container: acme", "No such container: <name>"),
        ("pull access denied for acme, which is not", "pull access denied for <name>, which is not"),
    ],
)
def test_a_plain_name_is_replaced_behind_phrases_of_docker_and_ssh(said: str, shown: str) -> None:
    assert scrub(said) == shown


@pytest.mark.parametrize("secret", PLAIN)
@pytest.mark.parametrize("option", ["host", "namespace", "image"])
def test_a_value_of_an_option_that_may_not_be_shown_is_replaced_everywhere(secret: str, option: str) -> None:
    hide_names_of(plan_with({option: secret}))
    for before, after in (("", ""), ("'", "'"), ("(", ")"), ("", ","), ("", "'s")):
        said = scrub(f"no permission for {before}{secret}{after} in this place")
        assert not {word.lower() for word in secret.split(":")} & set(re.findall("[a-z]+", said.lower()))
        assert said.startswith("no permission for ")
    assert scrub("the docker daemon did not answer") == "the docker daemon did not answer"


def test_an_option_that_may_be_shown_and_a_public_value_stay() -> None:
    hide_names_of(plan_with({"runtime": "runsc", "deployment": "docker", "shell": "bash"}, acquire="pool:acmepool"))
    assert scrub("docker has no runtime runsc, bash or acmepool") == "docker has no runtime runsc, bash or <name>"


def test_the_user_and_the_machine_are_replaced_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "buildhost.acme.example")
    monkeypatch.setenv("USER", "jsmith")
    monkeypatch.setenv("HOME", "/home/johnsmith")
    redaction.this_machine.cache_clear()
    try:
        assert scrub("buildhost: jsmith or JSMITH or johnsmith of acme") == "<name> or <name> or <name> of <name>"
    finally:
        monkeypatch.undo()
        redaction.this_machine.cache_clear()


@pytest.mark.parametrize(
    "text",
    [
        "image missing: run `taxtui setup`, then wait 30 s (exit 3)",
        "no command answered within 300 s of create; a sandbox is not ready yet: ImagePullBackOff",
        "0/3 nodes are available: 3 Insufficient cpu",
        "the docker daemon does not answer: Connection reset by peer",
        "the command was killed after 0.5 s; its session is closed",
        "exec: exit code 137, OOMKilled",
        "no answer 15 s after the command's timeout of 120 s",
        "InsufficientInstanceCapacity: there is no capacity in this region (500)",
        "cannot write: No space left on device",
    ],
)
def test_what_helps_stays(text: str) -> None:
    assert scrub(text) == text


KUBERNETES = (Path(__file__).parents[2] / "support" / "standins" / "kubernetes_messages.txt").read_text(
    encoding="utf-8"
)


@pytest.mark.parametrize("line", [line for line in KUBERNETES.splitlines() if not line.startswith("#")])
def test_kubernetes_messages_lose_the_names_in_them_and_nothing_else(line: str) -> None:
    words = re.split("«[^»]*»", line)
    said = scrub(line.replace("«", "").replace("»", ""))
    assert re.fullmatch("<[a-z]+>".join(map(re.escape, words)), said), said


def test_only_our_own_messages_are_shown_and_where_others_come_from_is_a_file_and_a_line() -> None:
    assert redact(CreateFailed("quota of 5 is used up")) == ("CreateFailed", "quota of 5 is used up")
    with pytest.raises(RuntimeError) as raised:
        raise RuntimeError("password hunter2")
    assert redact(raised.value) == ("RuntimeError", "")
    assert re.fullmatch(r"RuntimeError \(test_redaction\.py:\d+\)", located(raised.value))
    assert located(RuntimeError("never raised")) == "RuntimeError"


def test_one_line_of_bounded_length_without_characters_that_steer_a_terminal() -> None:
    assert scrub("one\ntwo\x1b[31mthree") == "one two [<id>"
    assert len(scrub("word " * 1000)) <= 300
    assert len(scrub("x" * 10**6)) <= 300
    for character in ("\u202e", "\u200b", "\u2066", "\ufffd", "\U000e0041"):
        assert scrub(f"wait {character} for docker{character}") == "wait <name> for <name>"
    assert scrub("30 s ≥ 2 × 10 s → wait") == "30 s ≥ 2 × 10 s → wait"
