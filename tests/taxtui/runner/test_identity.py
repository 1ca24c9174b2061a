from __future__ import annotations

import socket
from typing import Any

import msgspec
import pytest

from taxtui.plan.spec import CellPlan, Limits, Plan, Step, SubstrateRef, Tier
from taxtui.runner import identity
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.protocol import Availability, Effective

TIER = Tier(
    name="T", title="", network=True, preload="load", cycle=(Step(name="a", run="true"), Step(name="b", run="true"))
)
REF = SubstrateRef(name="ecs", options={"region": "eu-west-1", "cluster": "secret-name"})
CELL = CellPlan(substrate=REF, tier=TIER, actions=10, mode="session", concurrency=2)


def test_a_header_can_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "name-of-a-machine")
    described = identity.describe(Plan(cells=(CELL,), limits=Limits(cpus=0.5)))
    (cell,) = described["cells"]
    assert cell["substrate"]["options"]["region"] == "eu-west-1"
    assert cell["substrate"]["options"]["cluster"] == f"sha256:{identity.digest('secret-name')}"
    assert len(identity.digest("secret-name")) == 16
    assert (cell["mode"], cell["concurrency"], cell["tier"]["digest"]) == ("session", 2, TIER.digest)
    text = msgspec.json.encode([described, identity.client_facts(), identity.host_digest()]).decode()
    assert "secret-name" not in text
    assert "name-of-a-machine" not in text


def test_the_environment_changes_with_whatever_makes_trials_incomparable() -> None:
    facts = identity.client_facts()
    digests = {identity.environment(facts)}
    for key in ("taxtui", "python", "kernel", "cpu", "cores", "arch"):
        digests.add(identity.environment({**facts, key: "other"}))
    assert len(digests) == 7
    assert identity.environment(dict(facts)) in digests


def test_a_cell_says_what_was_asked_for_and_what_was_found() -> None:
    found = Availability(
        ok=True, detail="", version="27.1 runc", region="eu", image="sha256:1", cache="node", limits="v2"
    )
    plan = Plan(cells=(CELL,), limits=Limits(cpus=0.25, memory_mib=64))
    made: Any = identity.describe_cell(3, CELL, plan, FakeSubstrate(), found, "env")
    assert (made.id, made.substrate, made.provenance) == (3, "fake", "stand_in")
    assert (made.cpu_milli, made.memory_mib, made.limits, made.network) == (250, 64, "v2", "full")
    assert (made.substrate_version, made.image, made.cache) == ("27.1 runc eu", "sha256:1", "node")
    assert (made.cycle, made.actions, made.bracket, made.bracket_cost_ns, made.preload) == (2, 10, "bash", -1, "trial")
    assert "split_streams" in made.capabilities
    assert "paid" not in made.capabilities
    effective = Effective(cpus=2.0, memory_mib=4096, network="none")
    found = Availability(ok=True, detail="", effective=effective)
    real = identity.describe_cell(3, CELL, plan, FakeSubstrate(), found, "env")
    assert (real.cpu_milli, real.memory_mib, real.network) == (2000, 4096, "none")
