"""Runs inside a venv with verifiers: a rollout that sleeps as told. ``drive_verifiers.py FOLDER THINK_S SLEEP_S…``

The model is an endpoint of our own; beside the traces it writes how long it waited between two questions.
"""

import http.server
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

folder, think_s, *sleeps = sys.argv[1:]
TASKSET = """\
import verifiers.v1 as vf


class SleptTask(vf.Task[vf.TaskData]):
    @vf.reward(weight=1.0)
    async def reward(self, trace: vf.Trace) -> float:
        return 1.0


class SleptTaskset(vf.Taskset[SleptTask, vf.TasksetConfig]):
    def load(self):
        return [SleptTask(vf.TaskData(prompt="sleep"), self.config.task)]


__all__ = ["SleptTaskset"]
"""
asked_and_answered = []


class Model(http.server.BaseHTTPRequestHandler):
    """Asks for one command after the other, then is done."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._answer({"object": "list", "data": [{"id": "m", "object": "model", "created": 0, "owned_by": "x"}]})

    def do_POST(self):
        asked = time.monotonic()
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(float(think_s))
        number = len(asked_and_answered)
        message = {"role": "assistant", "content": "ok"}
        if number < len(sleeps):
            arguments = json.dumps({"command": f"sleep {sleeps[number]}"})
            function = {"name": "bash", "arguments": arguments}
            call = {"index": 0, "id": f"c{number}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "tool_calls" if "tool_calls" in message else "stop"
        told = {"id": f"r{number}", "created": int(time.time()), "model": "m"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if question.get("stream"):
            choices = [{"index": 0, "delta": message, "finish_reason": None}]
            last = [{"index": 0, "delta": {}, "finish_reason": reason}]
            chunks = [{"choices": choices}, {"choices": last}, {"choices": [], "usage": usage}]
            lines = [json.dumps(told | {"object": "chat.completion.chunk"} | chunk) for chunk in chunks]
            body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
            self._send(body.encode(), "text/event-stream")
        else:
            choices = [{"index": 0, "message": message, "finish_reason": reason}]
            self._answer(told | {"object": "chat.completion", "choices": choices, "usage": usage})
        asked_and_answered.append((asked, time.monotonic()))

    def _answer(self, told):
        self._send(json.dumps(told).encode(), "application/json")

    def _send(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
package = Path(folder, "packages", "slept")
package.mkdir(parents=True)
(package / "__init__.py").write_text(TASKSET)
options = {
    "model": "m",
    "output-dir": str(Path(folder, "outputs")),
    "push": "False",
    "client.base-url": f"http://127.0.0.1:{server.server_port}/v1",
    "client.api-key-var": "SLEPT_KEY",
    "env.agent.harness.id": "bash",
    "env.agent.runtime.type": "subprocess",
}
command = [str(Path(sys.executable).with_name("vf-eval")), "slept"]
command += [word for option, value in options.items() for word in (f"--{option}", value)]
environment = {**os.environ, "PYTHONPATH": str(package.parent.absolute()), "SLEPT_KEY": "none"}
subprocess.run(command, check=True, env=environment)
pairs = itertools.pairwise(asked_and_answered)
Path(folder, "bounds.txt").write_text(json.dumps([asked - done for (_, done), (asked, _) in pairs]))
