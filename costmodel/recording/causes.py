"""Causes of a trial's end, as Harbor classifies errors, and the consequence of each cause in the model.

``causes.toml`` has the classes of errors and the consequences, with their sources.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

SANDBOX: Final = "sandbox_failed"
PROVIDER: Final = "model_provider_failed"
HARNESS: Final = "harbor_failed"
VERIFIER: Final = "verifier_failed"
CANCELLED: Final = "cancelled"
UNCLASSIFIED: Final = "unclassified"

RETRIED: Final = "retried"
KEPT: Final = "kept"
DROPPED: Final = "dropped"


class CausePolicy(NamedTuple):
    """Consequences of a cause."""

    retry: bool  # whether the harness tries again
    grade: bool  # whether the verifier still runs
    reward_valid: bool  # whether the reward measures the agent

    @property
    def treatment(self) -> str:
        return KEPT if self.reward_valid else RETRIED if self.retry else DROPPED


_TABLES: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CAUSE_POLICIES: Final[dict[str, CausePolicy]] = {
    cause: CausePolicy(table["retry"], table["grade"], table["reward_valid"]) for cause, table in _TABLES.items()
}
"""Cause → consequences of most errors."""
_FINAL: Final = frozenset(_TABLES[PROVIDER]["not_retried"])
CAUSE_OF: Final[dict[str, str]] = {
    error: cause
    for cause, table in _TABLES.items()
    for error in (*table.get("errors", ()), *table.get("not_retried", ()))
}
"""Class of an error, without the module → cause."""
_STARTING: Final = ("create", "reset", "ready", "preload")


def cause_of(error: str, phase: str = "") -> str:
    """Return the cause of an error class; an unknown class during a start is ``sandbox_failed``."""
    return CAUSE_OF.get(error.rpartition(".")[2], SANDBOX if phase in _STARTING else UNCLASSIFIED)


def policy_of(cause: str, error: str = "") -> CausePolicy:
    """Return the consequences of a cause, for one class of errors."""
    policy = CAUSE_POLICIES.get(cause, CAUSE_POLICIES[UNCLASSIFIED])
    final = cause == PROVIDER and error.rpartition(".")[2] in _FINAL
    return policy._replace(retry=False) if final else policy


def recorded_cause(outcome: str, error: str, phase: str, cause: str) -> str:
    """Return the cause of a recorded trial, or "" without an error or in a file from before causes."""
    if cause in CAUSE_POLICIES:
        return cause
    if outcome in ("cancelled", "interrupted"):
        return CANCELLED
    return cause_of(error, phase) if error or outcome != "ok" else ""
