"""A corpus of code: Python's standard library, as it is installed, without comments and texts of several lines."""

from __future__ import annotations

import io
import sysconfig
import tokenize
from pathlib import Path

__all__ = ["python_source", "stripped"]

_LEFT_OUT = {"test", "tests", "idle_test", "encodings", "lib2to3", "site-packages", "dist-packages", "pydoc_data"}
_HELD_OUT_EVERY = 50


def python_source(*, held_out: bool = False) -> list[str]:
    """The files' texts in the order of their paths; every fiftieth is held out.

    Files that do not tokenize are left out. Which files there are depends on the version of Python.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for path in root.rglob("*.py") if _LEFT_OUT.isdisjoint(path.relative_to(root).parts))
    chosen = [path for index, path in enumerate(paths) if (index % _HELD_OUT_EVERY == 0) == held_out]
    texts = (stripped(path.read_text(encoding="utf-8", errors="ignore")) for path in chosen)
    return [text for text in texts if text]


def stripped(source: str) -> str:
    """Python code with four spaces a tab, in ASCII, without comments, strings over several lines, and empty lines.

    What does not tokenize gives an empty text.
    """
    lines = source.expandtabs(4).split("\n")
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline))
    except (tokenize.TokenError, SyntaxError):
        return ""
    for token in tokens:
        first, last = token.start[0] - 1, token.end[0]
        if token.type == tokenize.COMMENT:
            lines[first] = lines[first][: token.start[1]]
        elif token.type == tokenize.STRING and last - first > 1:
            lines[first:last] = [""] * (last - first)
    kept = "\n".join(line.rstrip() for line in lines if line.strip())
    return "".join(c for c in kept if c == "\n" or " " <= c <= "~") + "\n" if kept else ""
