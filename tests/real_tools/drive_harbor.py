"""Runs inside a venv with Harbor: one task whose solution sleeps as told. ``drive_harbor.py FOLDER IMAGE SLEEP_S``.

The environment is a container by the docker command, from an image that is there: nothing is built or fetched.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

TASK = """\
version = "1.0"
[metadata]
[verifier]
timeout_sec = 60.0
[agent]
timeout_sec = 60.0
[environment]
build_timeout_sec = 60.0
"""


class DockerCommand(BaseEnvironment):
    """One container."""

    def __init__(self, *args, image="", **kwargs):
        self._image = image
        self._name = f"taxtui-harbor-{uuid.uuid4().hex[:12]}"
        super().__init__(*args, **kwargs)

    @staticmethod
    def type():
        return "docker"

    @property
    def capabilities(self):
        return EnvironmentCapabilities()

    def _validate_definition(self):
        pass

    async def _docker(self, *arguments):
        process = await asyncio.create_subprocess_exec(
            "docker", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    async def start(self, force_build):
        code, _, err = await self._docker("run", "-d", "--rm", "--name", self._name, self._image, "sleep", "300")
        assert code == 0, err
        await self.exec("mkdir -p /logs/agent /logs/verifier /logs/artifacts /tests /solution")

    async def stop(self, delete):
        await self._docker("rm", "-f", self._name)

    async def upload_file(self, source_path, target_path):
        await self._docker("cp", str(source_path), f"{self._name}:{target_path}")

    async def upload_dir(self, source_dir, target_dir):
        await self.exec(f"mkdir -p {target_dir}")
        await self._docker("cp", f"{source_dir}/.", f"{self._name}:{target_dir}")

    async def download_file(self, source_path, target_path):
        await self._docker("cp", f"{self._name}:{source_path}", str(target_path))

    async def download_dir(self, source_dir, target_dir):
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await self._docker("cp", f"{self._name}:{source_dir}/.", str(target_dir))

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None, **_):
        options = [option for key, value in (env or {}).items() for option in ("-e", f"{key}={value}")]
        options += ["-w", cwd] if cwd else []
        began = (
            time.monotonic()
        )  # beside the trial: how long the solution took, which its action cannot be shorter than
        code, out, err = await self._docker("exec", *options, self._name, "bash", "-c", command)
        if "/solution/" in command and "solve.sh" in command:
            self.trial_paths.trial_dir.joinpath("bounds.txt").write_text(json.dumps(time.monotonic() - began))
        return ExecResult(stdout=out, stderr=err, return_code=code)


def main(folder, image, slept_s):
    task = Path(folder, "tasks", "slept")
    for inside in ("environment", "solution", "tests"):
        (task / inside).mkdir(parents=True)
    (task / "task.toml").write_text(TASK)
    (task / "instruction.md").write_text("Sleep.\n")
    (task / "environment" / "Dockerfile").write_text(f"FROM {image}\n")
    (task / "solution" / "solve.sh").write_text(f"#!/bin/bash\nsleep {slept_s}\n")
    (task / "tests" / "test.sh").write_text("#!/bin/bash\nsleep 0.3\necho 1 > /logs/verifier/reward.txt\n")
    config = {
        "job_name": "job",
        "jobs_dir": str(Path(folder, "jobs")),
        "agents": [{"name": "oracle"}],
        "environment": {"import_path": "drive_harbor:DockerCommand", "kwargs": {"image": image}},
        "tasks": [{"path": str(task)}],
    }
    path = Path(folder, "job.json")
    path.write_text(json.dumps(config))
    here = str(Path(__file__).parent)
    command = [str(Path(sys.executable).with_name("harbor")), "run", "-c", str(path), "--quiet", "--yes"]
    # Its prices of models would be fetched first.
    environment = {**os.environ, "PYTHONPATH": here, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
