"""The study's figures inside a page of the documentation."""

from __future__ import annotations

from collections.abc import Mapping

from retouch.errors import RetouchError


def page(text: str, blocks: Mapping[str, str]) -> str:
    """The page with its measured blocks replaced; a block stands between ``<!-- NAME -->`` and ``<!-- end NAME -->``.

    Args:
        text: the page as it is.
        blocks: new contents, by name.

    Raises:
        RetouchError: the page lacks a block.
    """
    for name, block in blocks.items():
        begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise RetouchError(f"Expected the page to hold {begin} and behind it {end}; put them where figures belong.")
        text = f"{before}{begin}\n{block}\n{end}{after}"
    return text
