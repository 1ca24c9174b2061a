"""``taxtui image``: the container image that holds the fixtures."""

from __future__ import annotations

import click


@click.group("image")
def command() -> None:
    """Build the container image that holds the fixtures."""


@command.command("build")
@click.option(
    "--base", metavar="IMAGE", help="Any image with bash, git, python3, venv and pip.  [python:3.11-slim + git]"
)
@click.option("--push", metavar="REF", help="Also push it as this.")
@click.option("--json", "as_json", is_flag=True, help="Print image, id, base, digest and what was pushed as JSON.")
def build(base: str | None, push: str | None, as_json: bool) -> None:
    """Build the image that sandboxes are made from; prints its name.

    Without --base the network is needed once, for python:3.11-slim and git.
    """
    from taxtui.workloads import image

    built = image.build(base, push=push, progress=lambda line: click.echo(line, err=True))
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(built))
    else:
        click.echo(built.image)
