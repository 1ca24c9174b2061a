"""Names in a recording: a digest, or the name itself if it is public or ``--keep-names`` was given."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from costmodel import cause_of
from taxtui import shipped
from taxtui.importers.protocol import Failure, ImportedTrial
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
"""Pattern of the names that ``--keep-names`` keeps: one word. Sentences and absolute paths are no names."""


class Names:
    """Maps names to recorded names; equal names have equal results."""

    def __init__(self, *, keep: bool) -> None:
        """``keep``: names stay names."""
        self._keep = keep

    def of(self, name: str) -> str:
        """A task, an image, a group, an agent; "" stays ""."""
        if self._keep and NAME.fullmatch(name) and "://" not in name and ".." not in name:
            return name
        return name and digest(name)

    def substrate(self, name: str) -> str:
        """A provider's public name, else as any other; ``unknown`` where there is none."""
        return name.lower() if name.lower() in SUBSTRATES else self.of(name) or "unknown"

    def error(self, name: str) -> str:
        """The class of an error."""
        return name if len(name) <= 120 and ERROR.fullmatch(name) else self.of(name)

    def clean(self, trial: ImportedTrial) -> ImportedTrial:
        """The trial with recorded names."""
        failure = trial.failure
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
            failure=failure and self._failure(failure),
        )

    def _failure(self, failure: Failure) -> Failure:
        """The failure with its cause, which the digest of an error's class no longer shows."""
        cause = failure.cause or cause_of(failure.error, failure.phase)
        return failure._replace(error=self.error(failure.error), cause=cause)
