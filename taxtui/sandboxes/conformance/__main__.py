"""``python -m taxtui.sandboxes.conformance NAME[:key=value,…]``: run the suite and print the outcomes."""

from __future__ import annotations

import asyncio
import sys
import time

import click

from taxtui.errors import TaxtuiError
from taxtui.plan.notation import parse_substrate
from taxtui.sandboxes import registry
from taxtui.sandboxes.conformance.bench import Check, Factory, NotApplicable, Violation, checks
from taxtui.terminal_text import clean


@click.command()
@click.argument("substrate")
@click.option(
    "--only", metavar="TEXT", multiple=True, help="Only checks with this text in the name, repeatable: exec, session."
)
@click.option("--ttl", type=float, metavar="SECONDS", help="Wait for a deadline this short.")
@click.option("--acquire", default="create", show_default=True, help="How sandboxes are acquired: pool:NAME.")
@click.option("--list", "listing", is_flag=True, help="Print the checks and their promises.")
def main(substrate: str, only: tuple[str, ...], ttl: float | None, acquire: str, listing: bool) -> None:
    """Check SUBSTRATE, as NAME or NAME:key=value, against the promises of taxtui.sandboxes.protocol.

    Exit code: 0 all checks pass, 1 a check fails, 3 the substrate cannot be used.
    """
    chosen = [check for check in checks() if not only or any(part in str(check) for part in only)]
    if listing:
        for check in chosen:
            click.echo(f"{check!s:<42} {check.promise}")
        return
    reference = parse_substrate(substrate)
    with registry.blamed(reference.name):
        answer = asyncio.run(registry.build(reference).check())
    if not answer.ok:
        click.echo(clean(f"{substrate}: {answer.detail}; {answer.fix}"), err=True)
        sys.exit(3)
    click.echo(clean(f"{substrate}: {answer.detail}"))
    count = {"ok": 0, "FAIL": 0, "skip": 0}
    for check in chosen:
        began = time.monotonic()
        word, why = asyncio.run(_judge(check, lambda: registry.build(reference), ttl, acquire))
        count[word] += 1
        click.echo(clean(f"  {word:<5} {check!s:<42} {time.monotonic() - began:6.1f} s  {why}").rstrip())
    click.echo(", ".join(f"{number} {word}" for word, number in count.items() if number))
    sys.exit(1 if count["FAIL"] else 0)


async def _judge(check: Check, factory: Factory, ttl_s: float | None, acquire: str) -> tuple[str, str]:
    """Run one check; return ok, FAIL or skip, and why."""
    try:
        await check(factory, short_ttl_s=ttl_s, acquire=acquire)
    except NotApplicable as reason:
        return "skip", str(reason)
    except Exception as error:
        why = str(error) if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
        return "FAIL", " ".join("; ".join([why, *getattr(error, "__notes__", ())]).split())
    return "ok", ""


if __name__ == "__main__":
    try:
        main(prog_name="python -m taxtui.sandboxes.conformance")
    except TaxtuiError as error:
        click.echo(f"taxtui: {clean(str(error))}", err=True)
        sys.exit(error.exit_code)
