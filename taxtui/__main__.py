"""``python -m taxtui`` is the ``taxtui`` command."""

from taxtui.cli import main

if __name__ == "__main__":
    main()
