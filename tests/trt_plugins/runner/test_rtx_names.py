"""What the runner asks of TensorRT-RTX's objects, which tests play: the library's own classes have it."""

from __future__ import annotations

import pytest
import tensorrt_rtx as trt

NAMES = {
    trt.Runtime: ("deserialize_cuda_engine", "engine_host_code_allowed", "get_plugin_registry"),
    trt.ICudaEngine: (
        "num_io_tensors", "num_optimization_profiles", "get_tensor_name", "get_tensor_mode", "get_tensor_dtype",
        "get_tensor_location", "get_tensor_shape", "get_tensor_profile_shape", "get_device_memory_size_for_profile_v2",
        "create_execution_context", "create_runtime_config",
    ),
    trt.IExecutionContext: (
        "set_optimization_profile_async", "set_device_memory", "set_input_shape", "get_tensor_shape",
        "set_tensor_address", "execute_async_v3", "is_stream_capturable",
    ),
    trt.IRuntimeConfig: (
        "set_execution_context_allocation_strategy", "dynamic_shapes_kernel_specialization_strategy",
    ),
    trt.Refitter: ("get_missing_weights", "refit_cuda_engine"),
    trt.OnnxParserRefitter: ("refit_from_bytes",),
    trt.DynamicShapesKernelSpecializationStrategy: ("NONE",),
    trt.ExecutionContextAllocationStrategy: ("USER_MANAGED",),
    trt.TensorLocation: ("HOST",),
    trt.TensorIOMode: ("INPUT", "OUTPUT"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMES, ids=lambda kind: kind.__name__)
def test_the_library_has_what_the_runner_asks_for(kind: type) -> None:
    assert [name for name in NAMES[kind] if not hasattr(kind, name)] == []
