"""Files and directories that appear in one step or not at all, and what is read strictly. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Written in one step
    "Kind",
    "StagedDirectory",
    "replace_bytes",
    "replace_text",
    "write_record_file",
    # Held, and kept beside
    "exclusive",
    "linked_copy",
    # Read strictly
    "parse_json",
    "read_dataclass",
    "read_record_file",
    # Described and checked
    "FileSpec",
    "check_file",
    "describe_file",
    "digest_of",
    "sha256_of",
    # Where things lie to each other
    "path_from",
    "relative_path",
]

from retouch.files._directory import Kind, StagedDirectory
from retouch.files._exclusive import exclusive
from retouch.files._file import replace_bytes, replace_text, sha256_of
from retouch.files._json import parse_json, read_dataclass
from retouch.files._linked import linked_copy
from retouch.files._paths import path_from, relative_path
from retouch.files._record import read_record_file, write_record_file
from retouch.files._spec import FileSpec, check_file, describe_file, digest_of
