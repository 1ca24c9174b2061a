"""``taxtui image``: the container image that holds the fixtures, and its files as a folder."""

from __future__ import annotations

import click


@click.group("image")
def command() -> None:
    """Build the container image that holds the fixtures, or unpack it."""


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


@command.command("unpack")
@click.option("--image", metavar="IMAGE", help="One that the docker daemon has.  [the one that `build` makes]")
@click.option("--to", metavar="FOLDER", help="A new folder.  [in the cache, where runsc, nspawn and uml look]")
def unpack(image: str | None, to: str | None) -> None:
    """Unpack an image for sandboxes that no daemon makes; prints the folder. As root, who can keep files' owners."""
    from pathlib import Path

    from taxtui.errors import UsageError
    from taxtui.workloads import unpacked
    from taxtui.workloads.image import DEFAULT_IMAGE

    if image is not None and to is None:
        raise UsageError("an image of your own needs a folder of its own", fix="add --to FOLDER")
    folder = unpacked.unpack(
        image or DEFAULT_IMAGE,
        None if to is None else Path(to).absolute(),
        progress=lambda line: click.echo(line, err=True),
    )
    click.echo(str(folder))
