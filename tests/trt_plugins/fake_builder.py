"""TensorRT's builder, which needs a GPU: notes what it is asked for; the engine that it makes holds the graph."""

from __future__ import annotations

import types
from typing import Any

import onnx
import tensorrt_rtx as real


class FakeTensorRt:
    """Stands in for the module ``tensorrt``; enums and loggers are TensorRT-RTX's.

    Attributes:
        flags: names of the flags that are set in the builder's configuration.
        previews: preview features that are on.
        libraries: plugin libraries that the registry loaded.
        serialised: plugin libraries that engines carry.
        caches: contents of the timing caches that were used.
        parsed: the graphs that were parsed.
        places: where their weights are looked for.
    """

    __name__ = "tensorrt"

    def __init__(self, version: str) -> None:
        self.__version__ = version
        self.flags: set[str] = set()
        self.previews: set[Any] = set()
        self.libraries: list[str] = []
        self.serialised: list[str] = []
        self.caches: list[bytes] = []
        self.parsed: list[onnx.ModelProto] = []
        self.places: list[str] = []
        self.refuses_cache = False

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)

    def Builder(self, _logger: Any) -> Any:  # noqa: N802  (TensorRT's name)
        registry = types.SimpleNamespace(load_library=lambda path: self.libraries.append(path) or path)
        return types.SimpleNamespace(
            create_network=lambda flags: types.SimpleNamespace(num_layers=7, flags=flags),
            create_builder_config=lambda: _Config(self),
            create_optimization_profile=lambda: types.SimpleNamespace(set_shape=lambda *_: None),
            get_plugin_registry=lambda: registry,
            build_serialized_network=lambda _network, _config: bytearray(b"a plan"),
        )

    def OnnxParser(self, _network: Any, _logger: Any) -> Any:  # noqa: N802  (TensorRT's name)
        return types.SimpleNamespace(parse=self._parse)

    def _parse(self, model: bytes, place: str) -> bool:
        self.parsed.append(onnx.load_from_string(model))
        self.places.append(place)
        return True


class _Config:
    def __init__(self, seen: FakeTensorRt) -> None:
        self.seen = seen

    def set_flag(self, flag: Any) -> None:
        self.seen.flags.add(flag.name)

    def clear_flag(self, flag: Any) -> None:
        self.seen.flags.discard(flag.name)

    def set_preview_feature(self, feature: Any, on: bool) -> None:
        assert on
        self.seen.previews.add(feature)

    def add_optimization_profile(self, _profile: Any) -> int:
        return 0

    def create_timing_cache(self, contents: bytes) -> Any:
        self.seen.caches.append(contents)
        return object()

    def set_timing_cache(self, _cache: Any, ignore_mismatch: bool) -> bool:
        return not ignore_mismatch and not self.seen.refuses_cache

    def get_timing_cache(self) -> Any:
        return types.SimpleNamespace(serialize=lambda: bytearray(self.seen.caches[-1] + b"+"))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "plugins_to_serialize":
            self.seen.serialised += value
        object.__setattr__(self, name, value)
