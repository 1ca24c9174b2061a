"""Where the docker daemon is: DOCKER_HOST and its companions, read as the docker package reads them.

Unix sockets and TCP, with or without TLS. ``ssh://`` and Windows pipes are refused: every action opens a connection,
and over ssh each would cost a login that the figures would show as docker's.
"""

from __future__ import annotations

import ssl
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from docker.errors import DockerException
from docker.tls import TLSConfig
from docker.utils import kwargs_from_env, parse_host

from taxtui.errors import SubstrateUnavailable
from taxtui.substrates.docker.http import Address

_UNIX: Final = "http+unix"


class Endpoint(NamedTuple):
    """The same daemon for both of our clients."""

    url: str
    tls: TLSConfig | bool
    address: Address


def endpoint(host: str = "") -> Endpoint:
    """``host``, else DOCKER_HOST, else the local socket. Raises ``SubstrateUnavailable``."""
    try:
        settings = kwargs_from_env()
        tls = settings.get("tls", False)
        url = str(parse_host(host or settings.get("base_url"), tls=bool(tls)))
    except DockerException as error:
        raise SubstrateUnavailable(
            f"docker: {error}", fix="set DOCKER_HOST to unix://PATH or tcp://HOST:PORT"
        ) from error
    parts = urlsplit(url)
    if parts.scheme == _UNIX:
        return Endpoint(url, False, Address(path=url.removeprefix(f"{_UNIX}://")))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        fix = "forward its socket with ssh -nNT -L ./docker.sock:/var/run/docker.sock HOST and use that"
        raise SubstrateUnavailable(f"docker: {parts.scheme}:// is not supported", fix=fix)
    context = _context(tls) if isinstance(tls, TLSConfig) else None
    return Endpoint(url, tls, Address(host=parts.hostname, port=parts.port or 0, tls=context))


def _context(tls: TLSConfig) -> ssl.SSLContext:
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
