"""What base runs keep, under their run ids, in memory and on disk. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Where states are kept
    "DeviceTier",
    "HostTier",
    "StateTier",
    # Whose they are
    "StateStore",
    # Runs on disk
    "RUN_SCHEMA_VERSION",
    "RunRecord",
    "check_run_target",
    "foreign_files",
    "read_record",
    "read_run",
    "write_run",
    # Arrays in files
    "FileNames",
    "read_arrays",
    "write_array",
    "write_arrays",
]

from retouch.states._array_files import FileNames, read_arrays, write_array, write_arrays
from retouch.states._run_directory import (
    RUN_SCHEMA_VERSION,
    RunRecord,
    check_run_target,
    foreign_files,
    read_record,
    read_run,
    write_run,
)
from retouch.states._store import StateStore
from retouch.states._tier import DeviceTier, HostTier, StateTier
