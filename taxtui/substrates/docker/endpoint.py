"""The docker daemon's address by DOCKER_HOST, DOCKER_CONTEXT and the current context, as the docker command finds it.

Unix sockets and TCP, with or without TLS. ``ssh://`` and Windows pipes are refused: every action opens a connection,
and the figures would show each ssh login as docker's time.
"""

from __future__ import annotations

import os
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

from docker.context import ContextAPI
from docker.errors import DockerException
from docker.tls import TLSConfig
from docker.utils import kwargs_from_env, parse_host

from taxtui.errors import SubstrateUnavailable
from taxtui.substrates.docker.http import Address

_UNIX: Final = "http+unix"


def endpoint(host: str = "") -> Address:
    """``host``, else DOCKER_CONTEXT, DOCKER_HOST, the current docker context, the local socket: the first setting
    present.

    Raises ``SubstrateUnavailable``.
    """
    try:
        settings = kwargs_from_env()
        place, tls = host or settings.get("base_url"), settings.get("tls", False)
        name = os.environ.get("DOCKER_CONTEXT", "")
        if not host and (name or not place) and (context := _context(name)):
            place, tls = context
        url = str(parse_host(place, tls=bool(tls)))
    except DockerException as error:
        raise SubstrateUnavailable(
            f"docker: {error}", fix="set DOCKER_HOST to unix://PATH or tcp://HOST:PORT"
        ) from error
    parts = urlsplit(url)
    if parts.scheme == _UNIX:
        return Address(path=url.removeprefix(f"{_UNIX}://"))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        fix = "forward its socket with ssh -nNT -L ./docker.sock:/var/run/docker.sock HOST and use that"
        raise SubstrateUnavailable(f"docker: {parts.scheme}:// is not supported", fix=fix)
    ssl_context = _ssl_context(tls) if isinstance(tls, TLSConfig) else None
    return Address(host=parts.hostname, port=parts.port or 0, tls=ssl_context)


def _context(name: str) -> tuple[str, TLSConfig | bool] | None:
    """Address and TLS of a docker context, by default the current one; None for the context ``default``."""
    fix = "see: docker context ls"
    try:
        context: Any = ContextAPI.get_context(name or None)
        if context is not None and context.name == "default":
            return None
        if context is not None and context.Host:
            return str(context.Host), context.TLSConfig or False
    except Exception as error:  # the SDK raises Exception itself for an unreadable file
        problem = f"docker: a docker context cannot be read: {type(error).__name__}"
        raise SubstrateUnavailable(problem, fix=fix) from error
    problem = f"there is no docker context {name!r}" if name else "the current docker context is missing"
    raise SubstrateUnavailable(f"docker: {problem}", fix=fix)


def _ssl_context(tls: TLSConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_cert)
        if not tls.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert:
            context.load_cert_chain(*tls.cert)
    except (OSError, ssl.SSLError) as error:
        raise SubstrateUnavailable(
            f"docker: a certificate cannot be read: {error}", fix="set DOCKER_CERT_PATH"
        ) from error
    return context
