"""Runs inside a venv with Harbor: a job with the plug-in, whose agent runs known commands. ``… FOLDER OPTIONS``

``OPTIONS`` is JSON: image, trials, commands (or none for the oracle), sleeps of agent set-up, solution and tests in
seconds, kwargs of the plug-in, environment (an import path, docker without one) and its kwargs.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from harbor.agents.base import BaseAgent

TASK = """\
version = "1.0"
[metadata]
[verifier]
timeout_sec = 60.0
[agent]
timeout_sec = {agent_timeout_s}
[environment]
build_timeout_sec = 60.0
docker_image = "{image}"
"""
CANARY = "sk-canary-0123456789abcdef"
"""Stands in the prompt, a command, an output, a path and an environment variable."""


class ScriptedAgent(BaseAgent):
    """Runs the commands that it is given, and writes what it saw and how long each call took."""

    def __init__(self, *args, commands=(), setup=(), think_s=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.commands, self.before, self.think_s = commands, setup, think_s

    @staticmethod
    def name():
        return "scripted"

    def version(self):
        return "1"

    async def setup(self, environment):
        for command in self.before:
            await environment.exec(command)

    async def run(self, instruction, environment, context):
        seen = []
        for command in self.commands:
            await asyncio.sleep(self.think_s)
            began = time.monotonic()
            result = await environment.exec(command)
            seen.append([time.monotonic() - began, result.return_code, result.stdout, result.stderr])
            (self.logs_dir / "seen.json").write_text(json.dumps(seen))


def main(folder, options):
    asked = json.loads(options)
    task = Path(folder, "tasks", f"slept-{CANARY}")
    for inside in ("environment", "solution", "tests"):
        (task / inside).mkdir(parents=True)
    timeout_s = asked.get("agent_timeout_s", 60.0)
    (task / "task.toml").write_text(TASK.format(image=asked["image"], agent_timeout_s=timeout_s))
    (task / "instruction.md").write_text(f"Sleep, {CANARY}.\n")
    (task / "solution" / "solve.sh").write_text(f"#!/bin/bash\necho {CANARY}\nsleep {asked.get('solution_s', 0)}\n")
    tests = f"#!/bin/bash\nsleep {asked.get('tests_s', 0)}\necho 1 > /logs/verifier/reward.txt\n"
    (task / "tests" / "test.sh").write_text(tests)
    agent = {"name": "oracle"}
    if "commands" in asked:
        kwargs = {key: asked[key] for key in ("commands", "setup", "think_s") if key in asked}
        agent = {"import_path": "drive_harbor_plugin:ScriptedAgent", "kwargs": kwargs}
    environment = {"type": "docker", "env": {"CANARY_KEY": CANARY}}
    if "environment" in asked:
        environment = {"import_path": asked["environment"], "kwargs": asked.get("environment_kwargs", {})}
    config = {
        "job_name": "job",
        "jobs_dir": str(Path(folder, "jobs")),
        "n_attempts": asked.get("trials", 1),
        "n_concurrent_trials": asked.get("concurrency", 1),
        "agents": [agent],
        "environment": environment,
        "tasks": [{"path": str(task)}],
        "verifier": {"disable": "environment" in asked},  # its tests would go to /tests of this machine
        "retry": {"max_retries": asked.get("retries", 0), "min_wait_sec": 0.01, "max_wait_sec": 0.01},
    }
    path = Path(folder, "job.json")
    path.write_text(json.dumps(config))
    here = f"{Path(__file__).parent}{os.pathsep}{Path(__file__).parents[2]}"
    command = [str(Path(sys.executable).with_name("harbor")), "run", "-c", str(path), "--quiet", "--yes"]
    if asked.get("plugin", True):
        command += ["--plugin", "taxtui"]
    for key, value in asked.get("kwargs", {}).items():
        command += ["--plugin-kwarg", f"{key}={json.dumps(value)}"]
    # Its prices of models would be fetched first.
    environ = {**os.environ, "PYTHONPATH": here, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HARBOR_TELEMETRY": "0"}
    os.execve(command[0], command, environ)  # so that a signal reaches Harbor itself


if __name__ == "__main__":
    main(*sys.argv[1:])
