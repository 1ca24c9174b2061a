"""The ``taxtui`` command, also as ``python -m taxtui``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while that is still being loaded ends it without a word."""
    try:
        from taxtui import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
