"""Runs inside a venv with mini-swe-agent: a trajectory that sleeps as told. ``… FOLDER THINK_S SLEEP_S…``

Beside it, it writes how long the model waited between two questions: no command can have taken longer.
"""

import itertools
import json
import sys
import time
from pathlib import Path

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.test_models import DeterministicModel, make_output

folder, think_s, *sleeps = sys.argv[1:]


asked_and_answered = []


class ThinkingModel(DeterministicModel):
    """Takes its time, and dates an answer when it is given, as the models of a provider do."""

    def query(self, messages, **kwargs):
        asked = time.monotonic()
        time.sleep(float(think_s))
        answer = super().query(messages, **kwargs)
        asked_and_answered.append((asked, time.monotonic()))
        return {**answer, "extra": {**answer["extra"], "timestamp": time.time()}}


commands = [f"sleep {seconds}" for seconds in sleeps]
outputs = [make_output("a", [{"command": command}]) for command in commands]
outputs.append(make_output("b", [{"command": command} for command in commands]))  # of one answer: one interval
outputs.append(make_output("c", [{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}]))
agent = DefaultAgent(
    ThinkingModel(outputs=outputs),
    LocalEnvironment(),
    system_template="s",
    instance_template="i",
    cost_limit=100.0,
    output_path=Path(folder, "sleeping.traj.json"),
)
agent.run("t")
pairs = itertools.pairwise(asked_and_answered)
Path(folder, "bounds.txt").write_text(json.dumps([asked - done for (_, done), (asked, _) in pairs]))
