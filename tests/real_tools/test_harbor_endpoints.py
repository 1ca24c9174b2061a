"""Harbor's environments with the SDKs of their providers, at an emulated endpoint that accepts no key.

An environment is started where its SDK takes another address. It is never started where the SDK would ask its provider.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

pytestmark = [pytest.mark.real_tools, pytest.mark.timeout(1800)]
KEY: Final = "sk-canary-0123456789abcdef"
STARTED: Final = {
    "daytona": {"DAYTONA_API_KEY": KEY, "DAYTONA_API_URL": "{url}"},
    "e2b": {"E2B_API_KEY": f"e2b_{'0' * 40}", "E2B_API_URL": "{url}"},
    "hf-sandbox": {"HF_TOKEN": KEY, "HF_ENDPOINT": "{url}"},
    "islo": {"ISLO_API_KEY": KEY, "ISLO_API_URL": "{url}", "ISLO_COMPUTE_URL": "{url}"},
    "kernel": {"KERNEL_API_KEY": KEY, "KERNEL_BASE_URL": "{url}"},
    "langsmith": {"LANGSMITH_API_KEY": KEY, "LANGSMITH_ENDPOINT": "{url}", "LANGSMITH_SANDBOX_API_URL": "{url}"},
    "novita": {"NOVITA_API_KEY": KEY, "NOVITA_API_URL": "{url}", "NOVITA_BASE_URL": "{url}"},
    "prime": {"PRIME_API_KEY": KEY, "PRIME_API_BASE_URL": "{url}"},
    "runloop": {"RUNLOOP_API_KEY": KEY, "RUNLOOP_BASE_URL": "{url}"},
    "sail": {"SAIL_API_KEY": KEY, "SAIL_API_URL": "{url}"},
    "tensorlake": {"TENSORLAKE_API_KEY": KEY, "TENSORLAKE_API_URL": "{url}"},
}
"""Environments whose SDK takes another address: variables."""
CONSTRUCTED: Final = {"modal": {"MODAL_TOKEN_ID": "ak-canary", "MODAL_TOKEN_SECRET": KEY}}
"""Environments whose SDK is installed here and would ask its provider: constructed alone, with these variables."""
NOT_STARTED: Final = {
    "ack": "needs a Kubernetes cluster",
    "aca-sandbox": "needs a login at Azure",
    "apple-container": "needs macOS",
    "beam": "speaks gRPC",
    "blaxel": "its SDK has a fixed address",
    "boxd": "its SDK takes no address by a variable",
    "cua-cloud": "asks a second service for a token over TLS",
    "cwsandbox": "speaks gRPC",
    "docker": "measured for real by the tests of conformance",
    "ec2": "needs the settings of a network, and SSH into the instance",
    "gke": "needs a Kubernetes cluster",
    "hyperbrowser": "pulls the image by this machine's docker first",
    "kata": "needs the program",
    "modal": "speaks gRPC",
    "mosaic": "needs the login that its own program writes",
    "opensandbox": "speaks TLS alone",
    "openshift": "needs a Kubernetes cluster",
    "podman": "needs the program",
    "runta": "its SDK needs another version of Harbor",
    "sbx": "needs a login at Docker, or the program",
    "singularity": "needs the program",
    "skypilot": "needs a cluster",
    "smol": "needs the program",
    "snowflake": "needs an account's address and its driver",
    "superserve": "its SDK takes no address by a variable",
    "use-computer": "computers of a desktop or phone: no sandbox of an image",
    "vercel": "its SDK has a fixed address",
}
"""Environments that are not started, and the reason. An environment that Harbor adds must be put into a table."""
START = """
import asyncio, json, logging, os, sys

logging.disable(logging.CRITICAL)
from harbor.models.environment_type import EnvironmentType
from taxtui.errors import TaxtuiError
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes import registry

async def start(name, starts):
    async with registry.build(parse_substrate(f"harbor:environment={name},image=none/such:1")) as substrate:
        found = await substrate.check()
        answer = [found.ok, f"{found.detail}; {found.fix}", "", ""]
        if found.ok and starts:
            spec = SandboxSpec(name="taxtui-e1-1", labels={"taxtui.run": "e1"}, limits=Limits(), ttl_s=60)
            try:
                async with asyncio.timeout(60):
                    await substrate.create(spec, lambda *_: None)
            except (TaxtuiError, TimeoutError) as error:
                answer[2:] = [type(error).__name__, str(error)]
            answer.append(len(await substrate.find("e1")))
        return answer

answers = {}
for name, variables in json.loads(sys.argv[1]).items():
    os.environ.update(variables)
    answers[name] = asyncio.run(start(name, sys.argv[2] == "start"))
    print(name, answers[name], file=sys.stderr, flush=True)
    for variable in variables:
        del os.environ[variable]
print("\\n" + json.dumps([answers, [each.value for each in EnvironmentType]]), flush=True)
os._exit(0)  # some SDKs leave threads
"""


@pytest.fixture(scope="module")
def interpreter(environment: Callable[..., str], groups: dict[str, list[str]]) -> str:
    root = Path(__file__).parents[2]
    return environment("3.12", "harbor-sdks", *groups["harbor-sdks"], "--editable", f"{root}[harbor]")


class Endpoint(http.server.ThreadingHTTPServer):
    """Refuses every request, and counts the requests."""

    daemon_threads = True
    requests = 0


class Refusal(http.server.BaseHTTPRequestHandler):
    server: Endpoint

    def answer(self) -> None:
        self.server.requests += 1
        body = b'{"error":{"code":"refused","message":"no such key"},"message":"no such key"}'
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def endpoints() -> Iterator[dict[str, Endpoint]]:
    """An endpoint for each environment, which accepts no key."""
    servers = {name: Endpoint(("127.0.0.1", 0), Refusal) for name in STARTED}
    for server in servers.values():
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield servers
    for server in servers.values():
        server.shutdown()
        server.server_close()


def start(
    interpreter: str, folder: Path, variables: dict[str, dict[str, str]], *words: str
) -> tuple[dict[str, list[object]], list[str]]:
    (folder / "tmp").mkdir()
    bare = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder / "tmp"), "LANG": "C.UTF-8"}
    argv = [interpreter, "-c", START, json.dumps(variables), *words]
    done = subprocess.run(argv, env=bare, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stderr)
    answers, known = json.loads(done.stdout.splitlines()[-1])
    return answers, known


def at(endpoints: dict[str, Endpoint]) -> dict[str, dict[str, str]]:
    """The variables of every environment that can be started at an endpoint."""
    urls = {name: f"http://127.0.0.1:{endpoint.server_address[1]}" for name, endpoint in endpoints.items()}
    return {name: {key: text.format(url=urls[name]) for key, text in each.items()} for name, each in STARTED.items()}


def test_every_environment_is_in_one_table(interpreter: str, tmp_path: Path) -> None:
    _, known = start(interpreter, tmp_path, {}, "check")
    assert not STARTED.keys() & NOT_STARTED.keys()
    assert set(known) <= STARTED.keys() | NOT_STARTED.keys()
    assert CONSTRUCTED.keys() <= NOT_STARTED.keys()


@pytest.mark.parametrize("key", [True, False])
def test_environments_are_constructed_with_their_key_alone(
    interpreter: str, tmp_path: Path, endpoints: dict[str, Endpoint], key: bool
) -> None:
    keys = {**at(endpoints), **CONSTRUCTED}
    answers, _ = start(interpreter, tmp_path, keys if key else {name: {} for name in keys}, "check")
    for name, (ok, said, *_) in answers.items():
        assert ok == key, (name, said)
        assert not [word for word in ("\n", "is not installed", KEY) if word in str(said)], (name, said)


def test_a_refused_start_is_one_line_and_leaves_nothing_without_its_name(
    interpreter: str, tmp_path: Path, endpoints: dict[str, Endpoint]
) -> None:
    answers, _ = start(interpreter, tmp_path, at(endpoints), "start")
    for name, (ok, said, error, message, left) in answers.items():
        assert ok, (name, said)
        assert endpoints[name].requests, f"{name} asks another address"
        assert error == "CreateFailed", (name, error, message)
        assert not [word for word in ("\n", "developer.mozilla.org", KEY) if word in str(message)], (name, message)
        assert left == 0 or "did not stop the sandbox" in str(message), (name, message)
