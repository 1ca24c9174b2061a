"""The plug-in's class: collects the trials of a job and writes a recording when the job ends or is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from taxtui.errors import TaxtuiError, located
from taxtui.harbor_plugin.watch import Watch, watch_environments
from taxtui.importers.formats.harbor import Executions, trial_of
from taxtui.importers.importing import missing_quantities
from taxtui.importers.names import Names
from taxtui.importers.spool import Spool
from taxtui.importers.writing import Provenance, write
from taxtui.runner.identity import client_facts, environment

_NAME: Final = "harbor"
_FILE: Final = "taxtui.msgpack"
_LAST_TRIALS_S: Final = 30.0
"""Longest wait for trials under cancellation when a job is interrupted."""
_UNUSED: Final = {"agent_result": True, "verifier_result": True, "step_results": {"__all__": {"agent_result"}}}
"""Parts of a trial's result with text of the model and the tests."""


class HarborPlugin:
    """``harbor run … --plugin taxtui``. Errors of the plug-in are printed on standard error and fail no trial."""

    def __init__(self, *, timer: bool = False, out: str = "") -> None:
        """``timer``: measure in-sandbox time too. ``out``: path of the recording, by default in the job's folder."""
        self._timer = timer
        self._out = out
        self._job_dir: Path
        self._stop_watching: Callable[[], None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._written = False
        self._watches: dict[str, Watch] = {}  # of the agent's environment, by trial
        self._attempts: Counter[str] = Counter()
        self._names = Names(keep=False)
        self._spool: Spool
        self._complained: set[str] = set()

    async def on_job_start(self, job: Any) -> None:
        with self._guard():
            self._begin(job)

    async def on_job_end(self, job_result: Any) -> None:
        self._finish()
        if self._ending is not None:
            self._ending.cancel()

    async def _at_the_end(self) -> None:
        """Write the recording of an interrupted or failed job, for which Harbor does not call ``on_job_end``."""
        try:
            await asyncio.Event().wait()
        finally:  # the loop ends, and cancels every task
            if not self._written and (tasks := asyncio.all_tasks() - {asyncio.current_task()}):
                await asyncio.wait(tasks, timeout=_LAST_TRIALS_S)
            self._finish()

    def _begin(self, job: Any) -> None:
        self._spool = Spool()
        self._job_dir = Path(job.job_dir).resolve()
        self._stop_watching = watch_environments(self._created)
        job.on_trial_ended(self._ended)
        self._ending = asyncio.create_task(self._at_the_end())

    def _created(self, environment: Any) -> None:
        with self._guard():
            folder = Path(environment.trial_paths.trial_dir).resolve()
            verifies = environment.session_id.startswith(f"{folder.name}__verifier")
            if folder.parent == self._job_dir and not verifies:  # a retried trial has the same folder
                self._watches[folder.name] = Watch(environment, self._guard, timed=self._timer)

    async def _ended(self, event: Any) -> None:
        with self._guard():
            self._add(event, self._watches.pop(event.config.trial_name, None))

    def _add(self, event: Any, watch: Watch | None) -> None:
        name = event.config.trial_name
        attempt = self._attempts[name]
        self._attempts[name] += 1
        result = event.result.model_dump(mode="json", exclude=_UNUSED)
        executions = None
        if watch is not None:
            executions = Executions(watch.commands, _runs_inside(event.config.agent), watch.stop)
        trial = self._names.clean(trial_of(result, self._job_dir / name, executions))
        config = event.config.environment
        wanted = None if watch is None else watch.environment.task_env_config
        image = getattr(wanted, "docker_image", None) or ""
        self._spool.add(
            msgspec.structs.replace(
                trial,
                attempt=attempt,
                substrate=_NAME,
                variant=config.type.value if config.type else self._names.of(config.import_path or ""),
                substrate_version=f"{_NAME} {version(_NAME)}",
                cpu_milli=round(1000 * (getattr(wanted, "cpus", None) or 0)),
                memory_mib=getattr(wanted, "memory_mb", None) or 0,
                image=self._names.of(image),
            )
        )

    def _finish(self) -> None:
        if self._written or self._stop_watching is None:
            return
        self._written = True
        spool = self._spool
        with self._guard():
            self._stop_watching()
            if not len(spool):
                _say("no trial has ended, so there is no recording")
                return
            path = _free(Path(self._out) if self._out else self._job_dir / _FILE)
            facts = client_facts()
            software = {**facts, _NAME: version(_NAME), "plugin": _NAME}
            bracket = "bash" if self._timer else "none"
            write(
                spool,
                _NAME,
                list(missing_quantities(spool)),
                path,
                Provenance("measured", software, environment(facts), bracket, "exec"),
            )
            if self._watches:
                _say(f"{len(self._watches)} trials had not ended and are not recorded")
            _say(f"{len(spool)} trials recorded; to read the recording: taxtui report {path}")

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Print each kind of error once, as a single line, and drop the error."""
        try:
            yield
        except Exception as error:
            problem = str(error) if isinstance(error, TaxtuiError) else f"unexpected {located(error)}"
            if problem not in self._complained:
                self._complained.add(problem)
                _say(f"the job continues, but the recording is incomplete: {problem}")


def _runs_inside(agent: Any) -> bool:
    """Whether Harbor installs the agent in the sandbox, so that the agent's commands are no ``exec`` calls."""
    from harbor.agents.factory import AgentFactory
    from harbor.agents.installed.base import BaseInstalledAgent

    return issubclass(AgentFactory.get_agent_class_from_config(agent), BaseInstalledAgent)


def _free(path: Path) -> Path:
    """The path, with a number where the file exists: each start of a resumed job has a recording."""
    number, wanted = 2, path
    while path.exists():
        path = wanted.with_stem(f"{wanted.stem}-{number}")
        number += 1
    return path


def _say(line: str) -> None:
    print(f"taxtui: {line}", file=sys.stderr)
