"""The ``taxtui`` command, also as ``python -m taxtui``."""

import sys

from taxtui import starting


def main() -> None:
    """Run the command line; Ctrl-C while that is still being loaded ends it without a word."""
    starting.quickly("__main__")
    try:
        from taxtui import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
