"""The docker daemon's address by DOCKER_HOST, DOCKER_CONTEXT and the current context, as the docker command finds it.

Unix sockets and plain TCP. ``ssh://``, TLS and Windows pipes are refused: every action opens a connection, and the
figures would show each login or handshake as docker's time.
"""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import urlsplit

from docker.context import ContextAPI
from docker.errors import DockerException
from docker.utils import parse_host

from taxtui.errors import SubstrateUnavailable
from taxtui.substrates.docker.http import Address

_UNIX: Final = "http+unix"
_FORWARD: Final = "forward its socket with ssh -nNT -L ./docker.sock:/var/run/docker.sock HOST and use that"


def endpoint(host: str = "") -> Address:
    """``host``, else DOCKER_CONTEXT, DOCKER_HOST, the current docker context, the local socket: the first setting
    present.

    Raises ``SubstrateUnavailable``.
    """
    place, tls = host or os.environ.get("DOCKER_HOST", ""), bool(os.environ.get("DOCKER_TLS_VERIFY"))
    name = os.environ.get("DOCKER_CONTEXT", "")
    if not host and (name or not place) and (context := _context(name)):
        place, tls = context.Host, bool(context.TLSConfig)
    try:
        url = str(parse_host(place or None))
    except DockerException as error:
        raise SubstrateUnavailable(
            f"docker: {error}", fix="set DOCKER_HOST to unix://PATH or tcp://HOST:PORT"
        ) from error
    parts = urlsplit(url)
    if parts.scheme == _UNIX:
        return Address(path=url.removeprefix(f"{_UNIX}://"))
    if parts.scheme != "http" or not parts.hostname or tls:
        kind = "TLS" if tls else f"{parts.scheme}://"
        raise SubstrateUnavailable(f"docker: {kind} is not supported", fix=_FORWARD)
    return Address(host=parts.hostname, port=parts.port or 0)


def _context(name: str) -> Any:
    """A docker context with an address, by default the current one; None for the context ``default``."""
    fix = "see: docker context ls"
    try:
        context: Any = ContextAPI.get_context(name or None)
        if context is not None and (context.name == "default" or context.Host):
            return None if context.name == "default" else context
    except Exception as error:  # the SDK raises Exception itself for an unreadable file
        problem = f"docker: a docker context cannot be read: {type(error).__name__}"
        raise SubstrateUnavailable(problem, fix=fix) from error
    problem = f"there is no docker context {name!r}" if name else "the current docker context is missing"
    raise SubstrateUnavailable(f"docker: {problem}", fix=fix)
