"""A report as blocks, and the two forms it is written in."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
    "th,td{border:1px solid #ccc;padding:.25em .6em;text-align:right}"
    "th:first-child,td:first-child{text-align:left}th{background:#f3f3f3}img{max-width:100%}"
    "pre{background:#f3f3f3;padding:.8em;overflow-x:auto}"
)


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Listing:
    """Points of a list."""

    points: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Lines for a terminal."""

    text: str


@dataclass(frozen=True)
class Rows:
    """A table."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A picture, by name of file."""

    file: str
    caption: str


Block = Heading | Paragraph | Listing | Code | Rows | Picture


def to_markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown; pictures are files beside it."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def to_html(blocks: Sequence[Block], pictures: Mapping[str, bytes]) -> str:
    """The blocks as one HTML file that needs no other."""
    title = html.escape(next(block.text for block in blocks if isinstance(block, Heading)))
    body = "\n".join(_html(block, pictures) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Listing(points):
            return "\n".join(f"- {point}" for point in points)
        case Code(text):
            return f"```\n{text}\n```"
        case Rows(head, rows):
            return "\n".join(_line(row) for row in (head, ("---",) * len(head), *rows))
        case Picture(file, caption):
            return f"![{caption}]({file})"


def _line(cells: Sequence[str]) -> str:
    # A bar in a name would be taken for the end of a cell.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _html(block: Block, pictures: Mapping[str, bytes]) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Listing(points):
            return "<ul>" + "".join(f"<li>{html.escape(point)}</li>" for point in points) + "</ul>"
        case Code(text):
            return f"<pre>{html.escape(text)}</pre>"
        case Rows(head, rows):
            lines = [_cells("th", head), *(_cells("td", row) for row in rows)]
            return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
        case Picture(file, caption):
            data = base64.b64encode(pictures[file]).decode("ascii")
            return f'<p><img alt="{html.escape(caption)}" src="data:image/png;base64,{data}"></p>'


def _cells(tag: str, cells: Sequence[str]) -> str:
    return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
