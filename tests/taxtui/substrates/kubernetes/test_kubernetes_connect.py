"""Where the cluster is looked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taxtui.errors import SubstrateUnavailable
from taxtui.substrates.kubernetes.connect import discover


def config(folder: Path, name: str, *, current: str = "one") -> Path:
    path = folder / name
    contexts = [
        {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "space"}},
        {"name": "two", "context": {"cluster": "c", "user": "u"}},
    ]
    body = {
        "current-context": current,
        "contexts": contexts,
        "clusters": [{"name": "c", "cluster": {"server": f"http://{name}.invalid"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path.write_text(json.dumps(body))
    return path


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


async def test_the_option_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(config(tmp_path, "env")))
    assert (await discover("", "")).configuration.host == "http://env.invalid"
    found = await discover(str(config(tmp_path, "given")), "")
    assert (found.configuration.host, found.namespace) == ("http://given.invalid", "space")


async def test_a_context_without_a_namespace_means_default(tmp_path: Path) -> None:
    assert (await discover(str(config(tmp_path, "given")), "two")).namespace == "default"


async def test_sdk_retries_and_its_connection_limit_are_off(tmp_path: Path) -> None:
    found = await discover(str(config(tmp_path, "given")), "")
    assert (found.configuration.retries, found.configuration.connection_pool_maxsize) == (None, 0)


async def test_nothing_found_says_what_to_do() -> None:
    with pytest.raises(SubstrateUnavailable, match="set KUBECONFIG or kubeconfig=FILE"):
        await discover("", "")


async def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    with pytest.raises(SubstrateUnavailable, match="three"):
        await discover(str(config(tmp_path, "given")), "three")


async def test_a_file_that_is_no_kubeconfig_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("- just\n- a list\n")
    with pytest.raises(SubstrateUnavailable, match="can't be used"):
        await discover(str(tmp_path / "odd"), "")


async def test_in_a_pod_without_a_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(SubstrateUnavailable, match="service account"):
        await discover("", "")
