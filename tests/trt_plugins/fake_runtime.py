"""TensorRT-RTX's runtime, which needs a GPU, played by ONNX Runtime; all other objects are the library's own."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import tensorrt_rtx as real

from retouch.trt_plugins._compile import Engine
from tests.trt_plugins.fake_cuda import FakeCuda

_TYPES = {
    onnx.TensorProto.FLOAT: (real.DataType.FLOAT, np.float32),
    onnx.TensorProto.FLOAT16: (real.DataType.HALF, np.float16),
    onnx.TensorProto.INT64: (real.DataType.INT64, np.int64),
    onnx.TensorProto.BOOL: (real.DataType.BOOL, np.bool_),
}


def compiled(_library: Any, work: Any, _options: Any, _tell: Any) -> Engine:
    """Stands in for ``compile_graph``: an engine whose contents are the graph and its profiles."""
    profiles = [{name: list(sizes) for name, sizes in profile.dims.items()} for profile in work.profiles]
    header = json.dumps({"folder": str(work.graph.folder), "profiles": profiles}).encode()
    return Engine(memoryview(header + b"\n" + work.graph.model.SerializeToString()), 1, ())


def library(cuda: FakeCuda, aliases: Mapping[str, str] | None = None) -> Any:
    """The library's module with another runtime.

    Args:
        cuda: where it runs.
        aliases: inputs whose memory outputs take over, by the outputs' names.
    """
    module = types.ModuleType("tensorrt_rtx")
    module.__dict__.update({name: value for name, value in vars(real).items() if not name.startswith("__")})
    module.__version__ = real.__version__
    module.refitted = []
    module.Refitter = lambda engine, _logger: Refitter(engine)
    module.OnnxParserRefitter = lambda refitter, _logger: ParserRefitter(refitter, module.refitted)
    module.Runtime = lambda logger: Runtime(cuda, logger, aliases or {})
    return module


class Runtime:
    def __init__(self, cuda: FakeCuda, logger: Any, aliases: Mapping[str, str]) -> None:
        self.cuda, self.logger, self.aliases = cuda, logger, aliases
        self.engine_host_code_allowed = False

    def deserialize_cuda_engine(self, contents: bytes) -> FakeEngine | None:
        if b"\n" not in contents:
            self.logger.log(real.ILogger.ERROR, "the plan file is broken")
            return None
        return FakeEngine(self.cuda, contents, self.aliases)


class Refitter:
    """Knows which weights an engine lacks, and whether they are put in."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.missing = [tensor.name for tensor in engine.graph.initializer if tensor.external_data]

    def get_missing_weights(self) -> list[str]:
        return self.missing

    def refit_cuda_engine(self) -> bool:
        return True


class ParserRefitter:
    """Takes weights from the files that a graph names."""

    def __init__(self, refitter: Refitter, seen: list[str]) -> None:
        self.refitter, self.seen = refitter, seen

    def refit_from_bytes(self, model: bytes, place: str) -> bool:
        for tensor in onnx.load_from_string(model).graph.initializer:
            if tensor.external_data:
                onnx.external_data_helper.load_external_data_for_tensor(tensor, str(Path(place).parent))
                self.seen.append(tensor.name)
                self.refitter.missing = [name for name in self.refitter.missing if name != tensor.name]
        return True


class FakeEngine:
    """An engine; its tensors are those of the graph in its contents."""

    def __init__(self, cuda: FakeCuda, contents: bytes, aliases: Mapping[str, str]) -> None:
        header, _, model = contents.partition(b"\n")
        described = json.loads(header)
        self.cuda, self.aliases = cuda, aliases
        self.graph = onnx.load_from_string(model).graph
        self.profiles = described["profiles"]
        self.tensors = {value.name: value.type.tensor_type for value in (*self.graph.input, *self.graph.output)}
        self.names = list(self.tensors)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        folder = str(Path(described["folder"]))
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.num_io_tensors = len(self.names)
        self.num_optimization_profiles = max(1, len(self.profiles))

    def get_tensor_name(self, index: int) -> str:
        return self.names[index]

    def get_tensor_mode(self, name: str) -> Any:
        is_input = any(value.name == name for value in self.graph.input)
        return real.TensorIOMode.INPUT if is_input else real.TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> Any:
        return _TYPES[self.tensors[name].elem_type][0]

    def get_tensor_location(self, _name: str) -> Any:
        return real.TensorLocation.DEVICE

    def get_aliased_input_tensor(self, name: str) -> str | None:
        return self.aliases.get(name)

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(-1 if isinstance(dim, str) else dim for dim in self.dims(name))

    def get_tensor_profile_shape(self, name: str, profile: int) -> list[tuple[int, ...]]:
        dims = self.dims(name)
        assert any(isinstance(dim, str) for dim in dims), (
            "a profile was asked for the shape of an input without open dims"
        )
        sizes = self.profiles[profile]
        return [tuple(sizes[dim][point] if isinstance(dim, str) else dim for dim in dims) for point in range(3)]

    def get_device_memory_size_for_profile_v2(self, profile: int) -> int:
        return 1000 * (profile + 1)

    def create_runtime_config(self) -> Any:
        return types.SimpleNamespace(set_execution_context_allocation_strategy=self._user_managed)

    def create_execution_context(self, config: Any) -> Context:
        specialisation = real.DynamicShapesKernelSpecializationStrategy
        assert config.dynamic_shapes_kernel_specialization_strategy == specialisation.NONE
        return Context(self)

    def dims(self, name: str) -> list[int | str]:
        return [dim.dim_param or dim.dim_value for dim in self.tensors[name].shape.dim]

    def _user_managed(self, strategy: Any) -> None:
        assert strategy == real.ExecutionContextAllocationStrategy.USER_MANAGED


class Context:
    def __init__(self, engine: FakeEngine) -> None:
        self.engine, self.cuda = engine, engine.cuda
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}
        self.profile = 0
        self.ready: dict[str, tuple[int, ...]] | None = None
        self.changes = 0

    def set_device_memory(self, address: int, size: int) -> None:
        self.cuda.view(address, size)

    def set_optimization_profile_async(self, profile: int, stream: int) -> bool:
        self.cuda.calls.append(("set_optimization_profile_async", profile, stream))
        self.profile = profile
        return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        least = largest = self.engine.get_tensor_shape(name)
        if min(least, default=0) < 0:
            least, _, largest = self.engine.get_tensor_profile_shape(name, self.profile)
        self.changes += self.shapes.get(name) != shape
        self.shapes[name] = shape
        return all(low <= size <= high for low, size, high in zip(least, shape, largest, strict=True))

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        sizes: dict[int | str, int] = {}
        for value in self.engine.graph.input:
            sizes.update(zip(self.engine.dims(value.name), self.shapes[value.name], strict=True))
        return tuple(sizes.get(dim, -1) if isinstance(dim, str) else dim for dim in self.engine.dims(name))

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.changes += self.addresses.get(name) != address
        self.addresses[name] = address
        return True

    def is_stream_capturable(self, _stream: int) -> bool:
        return True

    def execute_async_v3(self, stream: int) -> bool:
        engine = self.engine
        captured = stream in self.cuda.captures
        assert not captured or self.ready == self.shapes, "captured without a run with these shapes before"
        self.ready = dict(self.shapes)
        self.cuda.calls.append(("execute_async_v3", stream))
        assert set(self.addresses) == set(engine.names), "a tensor has no address"
        for output, source in engine.aliases.items():
            assert self.addresses[output] == self.addresses[source], "an aliased output lies elsewhere than its input"
        inputs = {value.name: self._place(value.name, self.shapes[value.name]) for value in engine.graph.input}
        outputs = {
            value.name: self._place(value.name, self.get_tensor_shape(value.name)) for value in engine.graph.output
        }
        changes = self.changes

        def execute() -> None:
            assert not captured or self.changes == changes, "launched after the context it was captured from changed"
            self._execute(inputs, outputs)

        self.cuda.put(stream, execute)
        return True

    def _place(self, name: str, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...], Any]:
        return self.addresses[name], shape, np.dtype(_TYPES[self.engine.tensors[name].elem_type][1])

    def _execute(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        fed = {name: self._array(place).copy() for name, place in inputs.items()}
        results = self.engine.session.run(list(outputs), fed)
        for place, result in zip(outputs.values(), results, strict=True):
            self._array(place)[...] = result

    def _array(self, place: tuple[int, tuple[int, ...], Any]) -> np.ndarray:
        address, shape, dtype = place
        size = int(np.prod(shape)) * dtype.itemsize
        return self.cuda.view(address, size).view(dtype).reshape(shape)
