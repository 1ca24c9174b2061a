"""The ``taxtui`` command, also as ``python -m taxtui``."""

import signal
import sys

from taxtui import standard_streams, starting


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line and exit code 130."""
    handles_interrupt = starting.exit_on_interrupt()
    standard_streams.prepare()
    try:
        from taxtui import cli

        cli.main()
    except KeyboardInterrupt:
        starting.print_interrupted()
        sys.exit(starting.INTERRUPTED)
    finally:
        if handles_interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends the process


if __name__ == "__main__":
    main()
