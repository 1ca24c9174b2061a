"""A hook of mkdocs: the roles of docstrings (:class:`X`, :func:`y`) are for editors; the site shows the name alone."""

import re
from typing import Any, Final

ROLE: Final = re.compile(r":(?:class|func|meth|data|mod|attr):(?=<code>)")


def on_page_content(html: str, **_: Any) -> str:
    """The page without the names of roles."""
    return ROLE.sub("", html)
