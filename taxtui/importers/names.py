"""Names in a recording: a digest, or the name itself if the name is public or with ``--keep-names``."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from costmodel import causes
from taxtui import shipped
from taxtui.importers.trial import ImportedTrial
from taxtui.recording import digest

SUBSTRATES: Final = frozenset(
    (
        *shipped.SUBSTRATES,
        *("apptainer", "beam", "blaxel", "bwrap", "cloudflare", "codesandbox", "cwsandbox", "e2b"),
        *("fargate", "flyio", "freestyle", "gke", "hopx", "islo", "k8s", "kata"),
        *("langsmith", "modal", "morph", "namespace", "northflank", "novita", "podman", "prime", "railway"),
        *("runloop", "runpod", "singularity", "sprites", "tensorlake", "together", "vercel"),
    )
)
"""Public names of providers and kinds of sandboxes."""

ERROR: Final = re.compile(
    r"([a-z]\w{0,39}\.){0,4}[A-Z][A-Za-z]{0,59}"
    r"(Error|Exception|Timeout|TimedOut|Exit|Interrupt|Failed|Failure|Exceeded|Killed|Lost|Cancelled|Limit)"
)
"""Classes of exceptions are code, not data."""

NAME: Final = re.compile(r"\w[\w.@:+/=-]{0,119}")
"""Pattern of names for ``--keep-names``: a single word. Sentences and absolute paths are no names."""


class Names:
    """Maps names to recorded names; equal names have equal results."""

    def __init__(self, *, keep: bool) -> None:
        """``keep``: keep names that match ``NAME``."""
        self._keep = keep

    def of(self, name: str) -> str:
        """Return the recorded name of a task, an image, a group or an agent; "" stays ""."""
        if self._keep and NAME.fullmatch(name) and "://" not in name and ".." not in name:
            return name
        return name and digest(name)

    def substrate(self, name: str) -> str:
        """Return a provider's public name; else a digest, or ``unknown`` without a name."""
        return name.lower() if name.lower() in SUBSTRATES else self.of(name) or "unknown"

    def error(self, name: str) -> str:
        """Return the class of an error, or a digest where the name is no class."""
        return name if len(name) <= 120 and ERROR.fullmatch(name) else self.of(name)

    def clean(self, trial: ImportedTrial) -> ImportedTrial:
        """Return the trial with recorded names."""
        failure = trial.failure
        if failure is not None:  # a digest of the error's class shows no cause
            cause = causes.recorded_cause(failure.outcome, failure.error, failure.phase, failure.cause)
            failure = failure._replace(error=self.error(failure.error), cause=cause)
        return msgspec.structs.replace(
            trial,
            substrate=self.substrate(trial.substrate),
            variant=self.of(trial.variant),
            substrate_version=self.of(trial.substrate_version),
            workload=tuple(map(self.of, trial.workload)),
            task=self.of(trial.task),
            image=self.of(trial.image),
            group=self.of(trial.group),
            node=self.of(trial.node),
            limit=self.error(trial.limit),
            failure=failure,
        )
