"""The command line: one click group whose subcommands are imported only when they are called.

stdout is data, stderr is talk. Exit codes: errors.py.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import io
import os
import sys
from typing import Final

import click

from taxtui import starting
from taxtui.errors import TaxtuiError, UsageError
from taxtui.terminal_text import clean_lines

COMMANDS: Final = {
    "run": "Measure: create sandboxes, run trajectories, write a recording.",
    "project": "Project recordings to any number of trajectories and workers.",
    "decide": "Move to another place, or stay: one page, with what would turn it.",
    "compare": "Compare two recordings, cell by cell.",
    "check": "A gate for CI: fail if cells got worse by more than a limit.",
    "report": "Tables of what was measured.",
    "site": "Pages over a folder of recordings, to put on a server.",
    "export": "Take the data away: csv, jsonl, parquet, OTLP spans, Prometheus metrics.",
    "replay": "Open the TUI on a recording.",
    "import": "Make a recording of the logs of other tools.",
    "recordings": "Inspect, verify, salvage and compact recordings.",
    "substrates": "List substrates; --check says whether they can be used.",
    "doctor": "Say what this machine is and what works on it, ready to be pasted.",
    "sweep": "Find and remove sandboxes that a run left behind.",
    "tier": "Make a tier from a trajectory or a repository of your own.",
    "fixtures": "Build the offline fixtures of T1 and T2.",
    "image": "Build the container image that holds the fixtures.",
}
"""Subcommand → its one-line help. The module is ``taxtui.commands.<name>``, its function ``command``."""

MODULES: Final = {"import": "importing"}
"""Where a subcommand's name cannot be a module's."""


class LazyGroup(click.Group):
    """Knows the names and one-line helps of its subcommands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they are used, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand's module. Raises ``UsageError`` with the nearest name where there is none."""
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
        """Run the subcommand. That the reader of our stdout went away (head, less) is not an error of ours."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise click.Abort from error  # click itself would print an empty line first
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python will flush it once more
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the table above; importing every subcommand for its help would cost a second."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


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
    """Run the command line; an error of ours is one line on stderr and its exit code, never a traceback.

    Raises ``KeyboardInterrupt``: Ctrl-C, which ``taxtui.__main__`` answers.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale may lack a character, and a file name may be no text
    try:
        sys.exit(app(prog_name="taxtui", standalone_mode=False))
    except click.Abort as error:  # click's word for Ctrl-C, and a RuntimeError
        raise KeyboardInterrupt from error
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"taxtui: {clean_lines(error.format_message())}", err=True)
        sys.exit(error.exit_code)
    except (TaxtuiError, _costmodel_error()) as error:
        click.echo(f"taxtui: {clean_lines(str(error))}", err=True)
        sys.exit(error.exit_code)
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            click.echo("taxtui: cannot write standard output: the disk is full", err=True)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what Python still holds back has nowhere to go
            sys.exit(1)
        if not _no_room(error):
            raise
        click.echo(f"taxtui: {error}; raise ulimit -n or -u, or the control group's pids.max", err=True)
        sys.exit(1)


def _no_room(error: OSError | RuntimeError) -> bool:
    """Whether this machine has no descriptor, process or thread for us any more."""
    if isinstance(error, OSError):
        return error.errno in (errno.EAGAIN, errno.EMFILE, errno.ENFILE)
    return "start new thread" in str(error)


def _costmodel_error() -> type[TaxtuiError]:
    from costmodel.errors import CostModelError  # cheap: defines classes only

    return CostModelError  # type: ignore[return-value]  # has exit_code too, but shares no base with us
