"""The command line: a click group with subcommands that are imported on first use.

Standard output is data, standard error is messages. Exit codes: errors.py.
"""

from __future__ import annotations

import difflib
import errno
import gc
import importlib
import os
import sys
from typing import Final

import click

from taxtui import starting
from taxtui.errors import TaxtuiError, UsageError
from taxtui.gc_tuning import COLLECT_AFTER
from taxtui.terminal_text import clean, clean_lines

FIRST: Final = {
    "run": "Measure substrates and write a recording. Without options: local and docker.",
    "report": "Print the answer and the tables of a recording.",
    "project": "Project a recording to a training run of any size.",
    "decide": "Decide whether to move a training run to another substrate.",
    "compare": "Compare two recordings, or the substrates of one; fail above a limit in CI.",
    "import": "Make a recording from logs of other tools.",
    "doctor": "Check this machine and its substrates.",
    "clean": "Remove sandboxes of ended runs.",
}
"""Commands of the three jobs, with their one-line help."""

MORE: Final = {
    "setup": "Build the fixtures and the container image of T1 and T2.",
    "tier": "Make tiers from a repository.",
    "recordings": "List, inspect and verify recordings.",
    "export": "Export trials or commands as csv or JSON lines.",
    "site": "Write pages over a folder of recordings.",
    "replay": "Watch a measurement again, from its recording.",
    "tui": "Open the terminal user interface, as taxtui without a command.",
}
COMMANDS: Final = FIRST | MORE
"""Subcommand → one-line help. The module is ``taxtui.commands.<name>``, the function ``command``."""

MODULES: Final = {"import": "importing"}
"""Modules of subcommands with a keyword as name."""


class LazyGroup(click.Group):
    """A group that imports a subcommand on its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a subcommand. Raises ``UsageError`` with the nearest name for an unknown subcommand."""
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:  # a shell asks for completions
                return None
            close = difflib.get_close_matches(cmd_name, COMMANDS, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(COMMANDS)}"
            raise UsageError(f"unknown command {cmd_name!r}", fix=hint)
        command = importlib.import_module(f"taxtui.commands.{MODULES.get(cmd_name, cmd_name)}").command
        starting.loaded()
        assert isinstance(command, click.Command)
        if ctx.resilient_parsing:
            from taxtui.commands.completion import complete

            complete(command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand. An early closed reader of an export (head, less) ends it without an error."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise click.Abort from error  # click itself would print an empty line first
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes standard output later
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the tables above: importing every subcommand takes a second."""
        for heading, commands in (("Commands", FIRST), ("More", MORE)):
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="taxtui", message="%(prog)s %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Measure what your sandboxes cost a reinforcement-learning run, and project it.

    Without a command: the terminal user interface.
    """
    if ctx.invoked_subcommand is None:
        from taxtui.tui.launch import launch

        starting.loaded()
        ctx.exit(launch())


def main() -> None:
    """Run the command line; an error of taxtui is one line on standard error and its exit code, never a traceback.

    Raises:
        KeyboardInterrupt: Ctrl-C; ``taxtui.__main__`` handles the exception.
    """
    gc.set_threshold(*COLLECT_AFTER)  # a simulation makes millions of tuples, and no cycles
    try:
        sys.exit(app(prog_name="taxtui", standalone_mode=False))
    except click.Abort as error:  # click's exception for Ctrl-C
        raise KeyboardInterrupt from error
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"taxtui: {clean_lines(error.format_message())}", err=True)
        sys.exit(error.exit_code)
    except (TaxtuiError, importlib.import_module("costmodel.errors").CostModelError) as error:
        click.echo(f"taxtui: {clean(' '.join(str(error).splitlines()))}", err=True)
        sys.exit(error.exit_code)
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            click.echo(f"taxtui: cannot write standard output: {error.strerror}", err=True)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes standard output later
            sys.exit(1)
        limits = (errno.EAGAIN, errno.EMFILE, errno.ENFILE)
        if getattr(error, "errno", None) in limits or "start new thread" in str(error):
            click.echo(f"taxtui: {error}; raise ulimit -n or -u, or the control group's pids.max", err=True)
            sys.exit(1)
        if not isinstance(error, OSError) or error.filename is None:
            raise
        click.echo(f"taxtui: cannot use {clean(os.fsdecode(error.filename))}: {error.strerror}", err=True)
        sys.exit(UsageError.exit_code)
