"""Runs inside a venv with inspect_ai: a sample whose agent sleeps as told. ``drive_inspect.py FOLDER THINK_S SLEEP_S…``

Beside each log it writes how long the model waited between two questions: no command can have taken longer.
"""

import itertools
import json
import sys
import time
from pathlib import Path

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash

folder, think_s, *sleeps = sys.argv[1:]


asked_and_answered = []


def answer(output):
    """Think first; with usage, or its tokens would be counted with a table that is fetched."""
    asked = time.monotonic()
    time.sleep(float(think_s))
    asked_and_answered.append((asked, time.monotonic()))
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def answers():
    for seconds in sleeps:
        yield answer(ModelOutput.for_tool_call("mockllm/model", "bash", {"command": f"sleep {seconds}"}))
    yield answer(ModelOutput.from_content("mockllm/model", "ok"))


@task
def sleeping():
    return Task(
        dataset=[Sample(id="s", input="sleep", target="ok")],
        solver=[use_tools([bash(timeout=30)]), generate()],
        scorer=includes(),
        sandbox="local",
    )


for form in ("eval", "json"):
    asked_and_answered.clear()
    eval(
        sleeping(),
        model=get_model("mockllm/model", custom_outputs=answers()),
        log_dir=folder,
        log_format=form,
        display="none",
    )
    pairs = itertools.pairwise(asked_and_answered)
    Path(folder, f"bounds_of_{form}.txt").write_text(json.dumps([asked - done for (_, done), (asked, _) in pairs]))
