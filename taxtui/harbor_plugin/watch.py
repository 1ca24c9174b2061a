"""Measures every ``exec`` of Harbor's environments. Harbor's hooks provide no environment: the factory is patched."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from costmodel import events
from taxtui.harbor_plugin import timer
from taxtui.importers.formats.harbor import Execution

_CREATE: Final = "create_environment_from_config"
_inside: ContextVar[bool] = ContextVar("taxtui_inside_exec", default=False)
"""True inside ``exec``: a nested call by the environment is not another command."""


class Watch:
    """The commands of an environment."""

    def __init__(self, environment: Any, guard: Callable[[], Any], *, timed: bool) -> None:
        """Put the measurement around ``environment.exec``. ``guard``: a context to report and drop errors."""
        self.environment = environment
        self.commands: list[Execution] = []
        self.stop: Execution | None = None
        self._guard = guard
        self._timed = timed
        self._exec = environment.exec

        @functools.wraps(self._exec)
        async def measured(*arguments: Any, **options: Any) -> Any:
            return await self._measured(*arguments, **options)

        stop = environment.stop

        @functools.wraps(stop)
        async def stopped(*arguments: Any, **options: Any) -> Any:
            start_ns, began_ns = time.time_ns(), time.monotonic_ns()
            result = await stop(*arguments, **options)
            if self.stop is None:  # Harbor stops an environment again at the end of a trial
                self.stop = Execution(start_ns, time.monotonic_ns() - began_ns)
            return result

        environment.exec, environment.stop = measured, stopped

    async def _measured(self, *arguments: Any, **options: Any) -> Any:
        if _inside.get():
            return await self._exec(*arguments, **options)
        timed = None
        if self._timed:
            with self._guard():
                timed = self._timed_command(arguments, options)
        if timed is not None and arguments:
            arguments = (timed.script, *arguments[1:])
        elif timed is not None:
            options = {**options, "command": timed.script}
        result = None
        token = _inside.set(True)
        start_ns, began_ns = time.time_ns(), time.monotonic_ns()
        try:
            result = await self._exec(*arguments, **options)
        finally:
            duration_ns = time.monotonic_ns() - began_ns
            with self._guard():
                _inside.reset(token)
                run_ns = events.UNKNOWN if timed is None or result is None else _take_out(result, timed)
                code = getattr(result, "return_code", events.UNKNOWN)
                self.commands.append(
                    Execution(
                        start_ns,
                        duration_ns,
                        run_ns if run_ns <= duration_ns else events.UNKNOWN,
                        code if isinstance(code, int) and code >= 0 else events.UNKNOWN,
                    )
                )
        return result

    def _timed_command(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> timer.TimedCommand | None:
        """Return the command with the timer, unless output is streamed or the sandbox has no POSIX shell."""
        environment = self.environment
        posix = getattr(environment.os, "value", environment.os) == "linux"
        command = options.get("command", arguments[0] if arguments else None)
        if not posix or not isinstance(command, str) or environment._output_callback() is not None:
            return None
        return timer.wrap(command)


def _take_out(result: Any, timed: timer.TimedCommand) -> int:
    """Remove the timer's line from either stream of a result; return the in-sandbox time."""
    run_ns = events.UNKNOWN
    for stream in ("stderr", "stdout"):
        if text := getattr(result, stream):
            text, time_ns = timer.unwrap(text, timed)
            setattr(result, stream, text)
            run_ns = time_ns if run_ns == events.UNKNOWN else run_ns
    return run_ns


def watch_environments(watcher: Callable[[Any], None]) -> Callable[[], None]:
    """Call a function for every environment created by Harbor, until the returned function is called.

    ``watcher`` must not raise. Several jobs may watch at once.
    """
    from harbor.environments.factory import EnvironmentFactory

    original = getattr(EnvironmentFactory, _CREATE)
    watching = True

    @functools.wraps(original)
    def create(*arguments: Any, **options: Any) -> Any:
        environment = original(*arguments, **options)
        if watching:
            watcher(environment)
        return environment

    def stop() -> None:
        nonlocal watching
        watching = False
        if getattr(EnvironmentFactory, _CREATE) is create:
            setattr(EnvironmentFactory, _CREATE, original)

    setattr(EnvironmentFactory, _CREATE, create)
    return stop
