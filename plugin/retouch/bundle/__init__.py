"""Bundles: the manifest, the files it lists and their hashes."""

from __future__ import annotations

__all__ = [
    # A bundle on disk
    "Bundle",
    "BundleWriter",
    "Check",
    "MANIFEST_FILE",
    "update_manifest",
    # Weights in another bundle
    "SharedSpec",
    "read_shared",
    "relocate",
    "write_shared",
    # Engines built from its graphs
    "BATCH",
    "NATIVE_ATTENTION",
    "OPEN_BATCH",
    "PLUGINS",
    "REFIT",
    "STRIPPED",
    "TRAITS",
    "VERSION_COMPATIBLE",
    "EngineSpec",
    "ProfileSpec",
    "at_batch",
    "check_writable",
    "is_engine_file",
    "store_engine",
    # What graphs read, and which prepared inputs become stale together
    "PreparedGroup",
    "prepared_groups",
    "reads",
    # Bundles of language models
    "ClustersSpec",
    "DecoderSpec",
    "ExpertsSpec",
    "SymbolsSpec",
    "TEXT_MANIFEST_FILE",
    "TEXT_SCHEMA_VERSION",
    "TextBundle",
    "TextBundleWriter",
    "TextManifest",
    "is_text_bundle",
    # The manifest
    "SCHEMA_VERSION",
    "Manifest",
    "manifest_from_json",
    "manifest_to_json",
    "total_bytes",
    # What the manifest is made of
    "BlocksSpec",
    "BreakEven",
    "CacheableSpec",
    "EditGraphSpec",
    "EditableSpec",
    "FileSpec",
    "GridSpec",
    "JointSpec",
    "ModelSpec",
    "MomentsSpec",
    "NeighbourhoodSpec",
    "OutputSpec",
    "PickedSpec",
    "PlanRow",
    "StackSpec",
    "TensorSpec",
    "ViewSpec",
]

from retouch.bundle._batches import at_batch
from retouch.bundle._bundle import MANIFEST_FILE, Bundle
from retouch.bundle._check import Check
from retouch.bundle._clusters import ClustersSpec
from retouch.bundle._decoder_spec import DecoderSpec, ExpertsSpec, SymbolsSpec
from retouch.bundle._engine_files import is_engine_file
from retouch.bundle._engine_store import check_writable, store_engine
from retouch.bundle._engines import (
    BATCH,
    NATIVE_ATTENTION,
    OPEN_BATCH,
    PLUGINS,
    REFIT,
    STRIPPED,
    TRAITS,
    VERSION_COMPATIBLE,
    EngineSpec,
    ProfileSpec,
)
from retouch.bundle._grids import BlocksSpec, GridSpec, JointSpec, PickedSpec, ViewSpec
from retouch.bundle._manifest import (
    SCHEMA_VERSION,
    CacheableSpec,
    EditableSpec,
    EditGraphSpec,
    Manifest,
    ModelSpec,
    NeighbourhoodSpec,
    OutputSpec,
    PlanRow,
    StackSpec,
    TensorSpec,
    total_bytes,
)
from retouch.bundle._measured import BreakEven, MomentsSpec
from retouch.bundle._prepared_groups import PreparedGroup, prepared_groups
from retouch.bundle._reads import reads
from retouch.bundle._serde import manifest_from_json, manifest_to_json
from retouch.bundle._shared import SharedSpec, read_shared, relocate, write_shared
from retouch.bundle._text_bundle import TextBundle, is_text_bundle
from retouch.bundle._text_manifest import TEXT_MANIFEST_FILE, TEXT_SCHEMA_VERSION, TextManifest
from retouch.bundle._text_writer import TextBundleWriter
from retouch.bundle._writer import BundleWriter, update_manifest
from retouch.files import FileSpec
