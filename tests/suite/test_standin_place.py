"""Where the stand-ins' commands run."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.standins import standin_place
from tests.support.standins.standin_place import Place


async def test_what_begins_while_its_place_is_removed_does_not_outlive_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[asyncio.subprocess.Process] = []
    create = asyncio.create_subprocess_exec

    async def slowly(*argv: str, **how: object) -> asyncio.subprocess.Process:
        begun.append(await create(*argv, **how))  # type: ignore[arg-type]
        await place.remove()
        return begun[0]

    place = Place("place-")
    monkeypatch.setattr(standin_place.asyncio, "create_subprocess_exec", slowly)
    with pytest.raises(ProcessLookupError):
        await place.start(["sleep", "600"], {}, stdin=False)
    assert begun[0].returncode == -9
    with pytest.raises(ProcessLookupError):
        await place.start(["true"], {}, stdin=False)
