"""Optional protocols of the life cycle: reset, suspend and resume a sandbox, copy its files, build an image.

``Capabilities.lifecycle`` lists the operations of a substrate, ``Capabilities.suspend_loses`` the lost state of a
suspended sandbox. The conformance suite checks both. A fork is a ``create`` from a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, runtime_checkable

import msgspec

from taxtui.errors import CreateFailed
from taxtui.plan.spec import Recordable
from taxtui.sandboxes.protocol import Marks

UNKNOWN: Final = -1
SNAPSHOT: Final = "snapshot"
"""``SandboxSpec.acquire`` of a sandbox from a snapshot or a built image is ``snapshot:REFERENCE``."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Present memory of a sandbox, and CPU time since the start; ``UNKNOWN`` without a report by the host."""

    memory_bytes: Recordable = UNKNOWN
    cpu_ns: Recordable = UNKNOWN


@runtime_checkable
class Resets(Protocol):
    """A sandbox of a substrate with the capability ``reset``."""

    async def reset(self, marks: Marks) -> None:
        """Restore the state of the sandbox after create. Raises ``ExecFailed``, ``SandboxLost``."""
        ...


@runtime_checkable
class Suspends(Protocol):
    """A sandbox with the operation ``suspend``."""

    async def suspend(self, marks: Marks) -> None:
        """Stop every process; return when all are stopped. No change to a suspended sandbox.

        ``destroy``, ``find`` and ``reap`` work on a suspended sandbox. A new command raises or waits. After a
        cancellation the sandbox runs or is suspended, and ``resume`` works. Raises ``ExecFailed``, ``SandboxLost``,
        ``Throttled``.
        """
        ...

    async def resume(self, marks: Marks) -> None:
        """Continue; return when commands can be sent. No change to a running sandbox. Raises as ``suspend``."""
        ...

    async def usage(self) -> Usage:
        """The present usage, also of a suspended sandbox. Raises as ``suspend``."""
        ...


@runtime_checkable
class Snapshots(Protocol):
    """A sandbox with the operation ``snapshot``."""

    async def snapshot(self, name: str, labels: Mapping[str, str], marks: Marks) -> str:
        """Copy the sandbox's files, without its processes, and return a reference for ``snapshot:REFERENCE``.

        ``find`` lists the copy by the labels, and ``reap`` removes it. A failed or cancelled call leaves no copy, or a
        copy in ``find``. Raises as ``Substrate.create``.
        """
        ...


@runtime_checkable
class Builds(Protocol):
    """A substrate with the operation ``build``."""

    async def build(self, name: str, dockerfile: str, labels: Mapping[str, str], marks: Marks) -> str:
        """Build an image without a cache, and return a reference for ``snapshot:REFERENCE``.

        Listed, removed and raises as ``Snapshots.snapshot``.
        """
        ...

    def dockerfile(self) -> str:
        """The shortest Dockerfile of a sandbox: the substrate's own image and one RUN step."""
        ...


def reference_of(acquire: str) -> str:
    """The reference of ``snapshot:REFERENCE``; "" for any other text. Raises ``CreateFailed``: there is none."""
    kind, colon, reference = acquire.partition(":")
    if kind != SNAPSHOT:
        return ""
    if not (colon and reference):
        raise CreateFailed(f"acquire={acquire} names no snapshot")
    return reference
