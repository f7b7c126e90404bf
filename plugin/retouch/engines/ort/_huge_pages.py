"""Whether the memory of this process comes in huge pages, in which edits read cold weights faster."""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path

_KERNEL_SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_TUNABLE = "glibc.malloc.hugetlb"
_ADVICE = (
    "Memory comes in small pages, in which an edit that follows other work can take up to twice as long: "
    f"set GLIBC_TUNABLES={_TUNABLE}=1 before the process starts."
)


class HugePages(Enum):
    """How the memory of this process is paged.

    Linux gives huge pages to everyone, to who asks for them, or to nobody
    (https://docs.kernel.org/admin-guide/mm/transhuge.html); glibc's malloc asks where its tunable is set when the
    process starts (https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html).
    """

    USED = "huge pages"
    NOT_ASKED = "small pages"
    NOT_THERE = "small pages; the system has no huge ones"

    @classmethod
    def here(cls, setting: Path = _KERNEL_SETTING) -> HugePages:
        """What this process gets, by the kernel's setting and the process' environment."""
        try:
            chosen = re.search(r"\[(\w+)\]", setting.read_text())
        except OSError:
            return cls.NOT_THERE
        if chosen is None or chosen[1] == "never":
            return cls.NOT_THERE
        asked = re.search(rf"{re.escape(_TUNABLE)}=[12]", os.environ.get("GLIBC_TUNABLES", ""))
        return cls.USED if asked or chosen[1] == "always" else cls.NOT_ASKED

    @property
    def advice(self) -> str | None:
        """What to do for faster edits; ``None`` if there is nothing to do."""
        return _ADVICE if self is HugePages.NOT_ASKED else None
