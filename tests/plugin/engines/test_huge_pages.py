"""Whether a process' memory comes in huge pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from retouch.engines.ort import HugePages


@pytest.mark.parametrize(
    ("setting", "tunables", "expected"),
    [
        ("always madvise [never]", "glibc.malloc.hugetlb=1", HugePages.NOT_THERE),
        ("[always] madvise never", "", HugePages.USED),
        ("always [madvise] never", "", HugePages.NOT_ASKED),
        ("always [madvise] never", "glibc.malloc.hugetlb=0", HugePages.NOT_ASKED),
        ("always [madvise] never", "glibc.malloc.check=1:glibc.malloc.hugetlb=1", HugePages.USED),
        (None, "glibc.malloc.hugetlb=1", HugePages.NOT_THERE),
    ],
)
def test_the_kernel_and_the_environment_decide(
    setting: str | None, tunables: str, expected: HugePages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", tunables)
    file = tmp_path / "enabled"
    if setting is not None:
        file.write_text(setting)
    assert HugePages.here(file) is expected
    assert (HugePages.here(file).advice is not None) == (expected is HugePages.NOT_ASKED)
