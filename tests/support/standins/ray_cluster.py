"""A Ray cluster of two nodes, as processes of this machine: ``python -m tests.support.standins.ray_cluster``.

No test process imports Ray. ``kill`` on standard input takes the second node away; the end of standard input ends all.
The name of the folder with Ray's files is in every process of this cluster.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support import waiting
from tests.support.command_line import marked

ROOT: Final = Path(__file__).parents[3]
STORE_BYTES: Final = 80 << 20
"""Of each node: the least that Ray takes."""
MEASURING: Final = b"taxtui.runner."
"""In the command line of workers and their watchdogs."""


class TwoNodes:
    """The cluster as whoever started it sees it."""

    def __init__(self, environment: Mapping[str, str], *, cores: int = 1) -> None:
        """Start it; ``environment`` is that of its nodes, each of which offers so many cores."""
        self.folder = Path(tempfile.mkdtemp(prefix="rays-"))  # short: sockets lie in it
        self.environment = {
            "RAY_TMPDIR": str(self.folder),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DISABLE_IMPORT_WARNING": "1",
            "RAY_prestart_worker_first_driver": "0",  # processes for tasks, by cores: nobody sends any
        }
        paths = [environment.get("PYTHONPATH"), str(ROOT)]
        nodes = {**environment, **self.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._log = (self.folder / "log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.standins.ray_cluster", str(cores)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=nodes,
            cwd=self.folder,
            start_new_session=True,
        )
        try:
            self.address = self._said()
        except BaseException:
            self.close()
            raise

    def _said(self) -> str:
        assert self._process.stdout is not None
        said = self._process.stdout.readline().decode().strip()
        assert said, (self.folder / "log").read_text()
        return said

    def kill_node(self) -> None:
        """Kill every process that Ray runs on the second node."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"kill\n")
        self._process.stdin.flush()
        assert self._said() == "killed"

    def processes(self) -> dict[int, bytes]:
        """Every living process that was started by it, with its command line."""
        found = {}
        for pid, _ in marked(os.fsencode(self.folder)):
            with contextlib.suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
        return found

    def measuring(self) -> list[int]:
        return sorted(pid for pid, words in self.processes().items() if MEASURING in words)

    def close(self) -> None:
        """End it, and every process that it has started."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(waiting.POLL_S)
        self._process.wait()
        self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _serve(cores: int) -> None:
    folder = Path(os.environ["RAY_TMPDIR"], "ray")
    folder.mkdir()
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {
        "num_cpus": cores,
        "object_store_memory": STORE_BYTES,
        "temp_dir": str(folder),
        "include_dashboard": False,
    }
    cluster: Any = Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(**node)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line == "kill\n":
            cluster.remove_node(second, allow_graceful=False)
            print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
