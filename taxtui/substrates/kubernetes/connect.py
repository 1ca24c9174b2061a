"""Find the cluster: kubeconfig and context as kubectl does, or the service account of taxtui's pod."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml
from kubernetes.aio import config as untyped_config
from kubernetes.aio.client import Configuration

from taxtui.errors import SubstrateUnavailable
from taxtui.sandboxes.kit.refusal import tell_cold
from taxtui.substrates.kubernetes.api import declined

REFRESH_S: Final = 300
"""Between two calls of a kubeconfig's credential plug-in; EKS tokens live for 15 minutes."""
config: Any = untyped_config
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Cluster:
    """A client configuration, the namespace of the context, and the renewal of the credentials."""

    def __init__(self, configuration: Any, namespace: str, loader: Any = None) -> None:
        """Switch off distortions of a measurement: SDK retries, and the limit of 100 connections."""
        configuration.retries = None
        configuration.connection_pool_maxsize = 0
        configuration.trace_configs = [_trace()]
        self.configuration = configuration
        self.namespace = namespace
        self._loader = loader

    async def stay_authenticated(self) -> None:
        """Renew the token of a credential plug-in as long as the task lives; returns without a plug-in."""
        user = getattr(self._loader, "_user", None)  # the loader has no public field for a plug-in
        if user is not None and ("exec" in user or self._loader.provider == "gcp"):
            await config.refresh_token(self._loader, self.configuration, REFRESH_S)


async def discover(kubeconfig: str, context: str) -> Cluster:
    """The cluster of kubectl. Raises ``SubstrateUnavailable``."""
    files = _kubeconfigs(kubeconfig)
    settings = Configuration()
    if files:
        try:
            loader = await config.load_kube_config(
                os.pathsep.join(files), context or None, client_configuration=settings, persist_config=False
            )
        except (config.ConfigException, yaml.YAMLError, OSError, TypeError, KeyError, ValueError) as error:
            text = " ".join(str(error).split())[:200]
            raise SubstrateUnavailable(f"kubernetes: the kubeconfig can't be used: {text}") from error
        return Cluster(settings, (loader.current_context.get("context") or {}).get("namespace") or "default", loader)
    if kubeconfig or context or "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise SubstrateUnavailable(
            "kubernetes: no kubeconfig found",
            fix="set KUBECONFIG or kubeconfig=FILE, or run in a pod with a service account",
        )
    try:
        config.load_incluster_config(settings)
    except (config.ConfigException, OSError) as error:
        raise SubstrateUnavailable(f"kubernetes: this pod's service account can't be used: {error}") from error
    namespace = "default"
    with contextlib.suppress(OSError):
        namespace = (await asyncio.to_thread(_SERVICE_ACCOUNT.read_text)).strip() or namespace
    return Cluster(settings, namespace)


def _kubeconfigs(option: str) -> list[str]:
    """The existing files among kubectl's kubeconfigs."""
    paths = option or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    return [path for path in paths.split(os.pathsep) if path and Path(path).expanduser().is_file()]


def _trace() -> aiohttp.TraceConfig:
    """Report a new connection to the sandbox of the request, and keep the body of a refused handshake."""

    async def answered(_: object, __: object, end: aiohttp.TraceRequestEndParams) -> None:
        body = declined.get()
        if body is not None and end.response.status >= 300:
            with contextlib.suppress(aiohttp.ClientError, OSError):  # then only the status is known
                body += await end.response.read()

    trace = tell_cold(aiohttp.TraceConfig())
    trace.on_request_end.append(answered)
    return trace
