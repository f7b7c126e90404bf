"""The calls that the runner makes, by NVIDIA's own bindings: these exist and take such arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retouch.engines.tensorrt._cuda import Cuda
from retouch.errors import EngineError, EngineMissingError

runtime: Any = pytest.importorskip("cuda.bindings.runtime", reason='cuda-bindings is not installed ("retouch[trt]")')

CALLS: dict[str, Callable[[Cuda], object]] = {
    "stream": lambda cuda: cuda.stream(),
    "destroy": lambda cuda: cuda.destroy(1),
    "synchronise": lambda cuda: cuda.synchronise(1),
    "allocate": lambda cuda: cuda.allocate(16, 1),
    "free": lambda cuda: cuda.free(16, 1),
    "upload": lambda cuda: cuda.upload(16, np.zeros(4), 1),
    "download": lambda cuda: cuda.download(np.zeros(4), 16, 1),
    "copy": lambda cuda: cuda.copy(16, 32, 8, 1),
    "begin_capture": lambda cuda: cuda.begin_capture(1),
    "end_capture": lambda cuda: cuda.end_capture(1),
    "launch": lambda cuda: cuda.launch(runtime.cudaGraphExec_t(), 1),
    "forget": lambda cuda: cuda.forget(runtime.cudaGraphExec_t()),
    "instantiate": lambda cuda: cuda._check("cudaGraphInstantiate", runtime.cudaGraph_t(), 0),
    "give the graph back": lambda cuda: cuda._check("cudaGraphDestroy", runtime.cudaGraph_t()),
    "properties": lambda cuda: cuda._check("cudaGetDeviceProperties", 1000),
    "free memory": lambda cuda: cuda._check("cudaDeviceGetDefaultMemPool", 1000),
    "memory info": lambda cuda: cuda._check("cudaMemGetInfo"),
}


def without_card() -> bool:
    error, count = runtime.cudaGetDeviceCount()
    return int(error) != 0 or count == 0


@pytest.mark.skipif(not without_card(), reason="there is a card, on which calls with made-up handles may do harm")
@pytest.mark.parametrize("name", CALLS)
def test_every_call_fails_for_want_of_a_card_and_for_nothing_else(name: str) -> None:
    cuda = Cuda.__new__(Cuda)
    cuda._runtime, cuda.name = runtime, "no card"
    with pytest.raises(EngineError, match=r"CUDA failed in cuda\w+ on no card \(.+\)"):
        CALLS[name](cuda)


def test_freed_memory_is_kept_by_a_number_of_the_drivers_type() -> None:
    from cuda.bindings import driver

    attribute = runtime.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold
    pool = runtime.cudaMemPool_t()
    (error,) = runtime.cudaMemPoolSetAttribute(pool, attribute, driver.cuuint64_t(2**64 - 1))
    assert int(error) != 0  # there is no such pool, but the arguments are of the right types


@pytest.mark.skipif(not without_card(), reason="there is a card")
def test_without_a_card_the_driver_says_why() -> None:
    with pytest.raises(EngineMissingError, match=r"NVIDIA GPU with its driver to run engines, got: .+\. Engines"):
        Cuda()


def test_the_names_of_codes_and_kinds() -> None:
    assert int(runtime.cudaError_t.cudaErrorMemoryAllocation) == 2
    assert runtime.cudaStreamNonBlocking == 1
    for name in ("cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"):
        assert hasattr(runtime.cudaMemcpyKind, name)
    properties = runtime.cudaDeviceProp()
    assert isinstance(properties.name, bytes) and {properties.major, properties.minor} <= {*range(20)}
