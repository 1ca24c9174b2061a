"""Clean-ups that a cancellation must not interrupt, and both failures in one error."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import pytest

from taxtui.errors import CreateFailed, ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, undo_if_cancelled, with_cleanup
from tests.support import waiting


@pytest.mark.parametrize("value", [3, -1])
async def test_work_is_finished_before_any_number_of_cancellations_is_passed_on(value: int) -> None:
    finished = []

    async def work() -> int:
        await asyncio.sleep(0.05)
        finished.append(value)
        if value < 0:  # a cancellation outranks the work's own error
            raise ValueError(value)
        return value

    task = asyncio.create_task(finish_despite_cancel(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    await waiting.cancelled(task)
    with contextlib.nullcontext() if value > 0 else pytest.raises(ValueError, match="-1"):
        assert await finish_despite_cancel(work()) == value
    assert finished == [value] * 2


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("then", ["obeys", "fails", "goes on"])
async def test_work_that_never_ends_is_given_up_without_a_complaint_to_the_loop(then: str, cancelled: bool) -> None:
    begun, release, told = asyncio.Event(), asyncio.Event(), asyncio.Event()
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def work() -> None:
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                told.set()
                if then == "fails":
                    raise ValueError from None
                if then == "obeys":
                    raise

    task = asyncio.create_task(finish_despite_cancel(work(), 0.05))
    await begun.wait()
    if cancelled:
        task.cancel()
    given_up = pytest.raises(ExecFailed, match=r"given up: it took longer than 0\.05 s")
    with pytest.raises(asyncio.CancelledError) if cancelled else given_up:
        await task
    await told.wait()
    release.set()
    del task
    await asyncio.sleep(0.01)
    gc.collect()
    assert complaints == []


class CleanUp:
    """A clean-up that takes a moment, and may fail."""

    def __init__(self, failure: SubstrateError | None = None) -> None:
        self.failure = failure
        self.finished = False

    async def __call__(self) -> None:
        await asyncio.sleep(0.01)
        self.finished = True
        if self.failure:
            raise self.failure


@pytest.mark.parametrize(
    ("failure", "kind", "words"),
    [
        (None, ExecTimeout, "the command was killed after 2 s; its session is closed"),
        (ExecFailed("they survive"), ExecFailed, "the command had no end after 2 s; they survive"),
        (SandboxLost("it ended"), SandboxLost, "the command had no end after 2 s; it ended"),
    ],
)
async def test_a_command_is_killed_before_its_timeout_is_reported(
    failure: SubstrateError | None, kind: type[SubstrateError], words: str
) -> None:
    kill = CleanUp(failure)
    error = await kill_then_timeout(kill(), 2.0, "; its session is closed")
    assert kill.finished
    assert (type(error), str(error)) == (kind, words)


@pytest.mark.parametrize("fails", [False, True])
async def test_undoes_the_result_that_a_cancelled_caller_does_not_receive(fails: bool) -> None:
    undone = []

    async def work() -> str:
        await asyncio.sleep(0.05)
        if fails:
            raise CreateFailed("refused")
        return "sandbox"

    async def undo(sandbox: str) -> None:
        await asyncio.sleep(0)
        undone.append(sandbox)

    assert await undo_if_cancelled(asyncio.sleep(0, "result"), undo) == "result"
    task = asyncio.create_task(undo_if_cancelled(work(), undo))
    await asyncio.sleep(0)
    await waiting.cancelled(task)
    assert undone == ([] if fails else ["sandbox"])


@pytest.mark.parametrize(
    ("error", "failure", "text"),
    [
        (CreateFailed("no room"), None, "no room"),
        (CreateFailed("no room"), ExecFailed("no answer"), "no room; no answer"),
        (SandboxLost("gone: no answer"), ExecFailed("no answer"), "gone: no answer"),
        (asyncio.CancelledError(), ExecFailed("no answer"), "no answer"),  # as a note
    ],
)
async def test_an_error_is_returned_after_its_clean_up_with_the_failure_of_the_clean_up(
    error: BaseException, failure: SubstrateError | None, text: str
) -> None:
    clean_up = CleanUp(failure)
    assert await with_cleanup(clean_up(), error) is error
    assert (clean_up.finished, str(error) or error.__notes__[0]) == (True, text)
