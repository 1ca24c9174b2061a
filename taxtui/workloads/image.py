"""The container image with the fixtures and T1's preloaded repository, built with the docker command.

The command rather than the SDK: only substrates import SDKs, a push needs the credential helpers of the
command, and either builder and any docker context work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from taxtui.errors import SubstrateUnavailable
from taxtui.plan.scenario import load_tier
from taxtui.workloads import fixtures
from taxtui.workloads.programs import run_program

DOCKERFILE: Final = Path(__file__).parent / "Dockerfile"
DOCKERFILE_BASE: Final = Path(__file__).parent / "Dockerfile.base"
PRELOAD: Final = load_tier("T1").preload

DIGEST: Final = hashlib.sha256(msgspec.msgpack.encode((fixtures.DIGEST, PRELOAD, DOCKERFILE.read_bytes()))).hexdigest()[
    :12
]
"""12 hex digits over the image's content above the base."""

DEFAULT_IMAGE: Final = f"taxtui-sandbox:{DIGEST}"
"""The image's name with the digest: images with older fixtures have another name."""

FIXTURES_LABEL: Final = "taxtui.fixtures"
"""The label of an image for the shipped tiers, with the value ``DIGEST``."""

ORDINARY_BASE: Final = "taxtui-base:python-3.11-slim"


def exists() -> bool:
    """Whether docker has ``DEFAULT_IMAGE``. Raises ``SubstrateUnavailable``: docker cannot be used."""
    _require_docker()
    return bool(_docker("cannot list images", "image", "ls", "--quiet", DEFAULT_IMAGE))


def _require_docker() -> None:
    _docker("docker cannot be used (check the daemon and your permission)", "version", "--format={{.Server.Version}}")


def build(base: str | None = None, *, push: str | None = None, progress: Callable[[str], None] = lambda _: None) -> str:
    """Build and return ``DEFAULT_IMAGE`` from ``base``, or from python:3.11-slim and git; push it as ``push`` if given.

    Raises:
        SubstrateUnavailable: no docker command, no daemon, no permission, or an unavailable image.
        TaxtuiError: the fixtures cannot be built.
    """
    _require_docker()
    if base is None:
        base = ORDINARY_BASE
        progress("making the base: python:3.11-slim with git")
        text = DOCKERFILE_BASE.read_bytes()
        failure = "cannot make the default base (or give --base IMAGE)"
        _docker(failure, "build", "--quiet", f"--tag={base}", "-", stdin=text)
    context = fixtures.ensure(progress)
    progress(f"building {DEFAULT_IMAGE} from {base}")
    _docker(
        "cannot build the image",
        *("build", "--quiet", "--network=none", f"--file={DOCKERFILE}", f"--tag={DEFAULT_IMAGE}"),
        *(f"--build-arg=BASE={base}", f"--build-arg=PRELOAD={PRELOAD}", f"--label={FIXTURES_LABEL}={DIGEST}"),
        str(context),
        fix="the base needs bash, git, python3, venv and pip",
    )
    if push:
        progress(f"pushing {push}")
        _docker(f"cannot tag {DEFAULT_IMAGE} as {push}", "tag", DEFAULT_IMAGE, push)
        _docker(f"cannot push {push}", "push", "--quiet", push)
    return DEFAULT_IMAGE


def _docker(failure: str, *arguments: str, stdin: bytes = b"", fix: str = "") -> str:
    """Return the output of a docker command. Raises ``SubstrateUnavailable``."""
    return run_program(["docker", *arguments], failure, SubstrateUnavailable, stdin=stdin, fix=fix).decode().strip()
