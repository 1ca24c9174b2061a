"""Parts of recordings: the cells that a question is about, with what their neighbours tell of them."""

from __future__ import annotations

import copy
from collections.abc import Callable

from costmodel.recording import CellIdentity, Recording


def only(recording: Recording, wanted: Callable[[CellIdentity], bool]) -> Recording:
    """The recording without the cells that are not wanted, nor differ from a wanted one in length or concurrency only.

    What a row says also depends on those: lengths are predicted from each other, contention is told from the same cell
    alone.
    """
    families = {_family(cell.identity) for cell in recording.cells if wanted(cell.identity)}
    part = copy.copy(recording)
    part.cells = [cell for cell in recording.cells if _family(cell.identity) in families]
    return part


def _family(identity: CellIdentity) -> CellIdentity:
    return identity._replace(actions=0, length="", concurrency=1, arrival="")
