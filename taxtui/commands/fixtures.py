"""``taxtui fixtures build``: the offline fixtures of T1 and T2, in the user's cache directory."""

from __future__ import annotations

import click


@click.group("fixtures")
def command() -> None:
    """Build the offline fixtures of T1 and T2."""


@command.command("build")
@click.option("--json", "as_json", is_flag=True, help="Print path, digest, commit and tree as JSON.")
def build(as_json: bool) -> None:
    """Build the fixtures, or verify those that are there; prints their folder.

    Needs git, pip and the package index once; afterwards nothing.
    """
    from taxtui.workloads import fixtures

    folder = fixtures.ensure(lambda line: click.echo(line, err=True))
    if as_json:
        import json

        facts = {"path": str(folder), "digest": fixtures.DIGEST, "commit": fixtures.COMMIT, "tree": fixtures.TREE}
        click.echo(json.dumps(facts))
    else:
        click.echo(folder)
