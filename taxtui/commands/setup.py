"""``taxtui setup``: build the offline fixtures of T1 and T2, and the container image with the fixtures."""

from __future__ import annotations

import click

from taxtui.errors import SubstrateUnavailable, UsageError


@click.command("setup")
@click.option(
    "--base", metavar="IMAGE", help="Base image with bash, git, python3, venv and pip.  [python:3.11-slim with git]"
)
@click.option("--push", metavar="REF", help="Push the image under this name too.")
@click.option(
    "--new",
    "new_name",
    metavar="NAME",
    help="Write the first files of a new substrate, and build nothing.",
)
def command(base: str | None, push: str | None, new_name: str | None) -> None:
    """Build the fixtures of T1 and T2, and the container image with the fixtures if docker can be used.

    Prints the folder of the fixtures and the name of the image. Existing parts are kept; --base
    builds the image again. The first time needs git, pip, the package index and an image registry.
    Exit code 3: --base or --push was given, and docker cannot be used.
    """
    if new_name is not None:
        if base is not None or push is not None:
            raise UsageError("--new builds no image", fix="drop --base and --push")
        _write_substrate(new_name)
        return
    from taxtui.workloads import fixtures

    folder = fixtures.ensure(_say)
    name = ""
    try:
        name = _image(base, push)
    except SubstrateUnavailable as error:
        if base is not None or push is not None:
            raise
        _say(f"taxtui: no image for docker: {error}")
    click.echo(folder)
    if name:
        click.echo(name)


def _write_substrate(name: str) -> None:
    """Write the first files of a substrate into this folder. Raises ``UsageError``: a bad name, or a file exists."""
    from pathlib import Path

    from taxtui.sandboxes import new

    for path in new.write(name, Path.cwd()):
        click.echo(f"wrote {path.name}")
    click.echo(f"next: install this folder, then python -m taxtui.sandboxes.conformance {name}")


def _image(base: str | None, push: str | None) -> str:
    """Return the name of the existing or built image. Raises ``SubstrateUnavailable``: docker cannot be used."""
    from taxtui.workloads import image

    if base is None and push is None and image.exists():
        _say(f"{image.DEFAULT_IMAGE} exists already")
        return image.DEFAULT_IMAGE
    return image.build(base, push=push, progress=_say)


def _say(line: str) -> None:
    click.echo(line, err=True)
