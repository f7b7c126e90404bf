"""A GPU as the checks of the kernels use it, and PyTorch's way to one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from retouch.errors import EngineMissingError

__all__ = ["BURST", "REPEATS", "WARM_UP", "Buffer", "Card", "TorchCard", "burst"]

WARM_UP = 3
REPEATS = 20
BURST = 10
"""So many runs follow each other where a run is timed by itself: starting one takes longer than small ones do."""


@dataclass(frozen=True)
class Buffer:
    """Memory of a card.

    Attributes:
        address: where it begins.
        owner: what keeps it.
    """

    address: int
    owner: Any


def burst(run: Callable[[], object]) -> Callable[[], None]:
    """Many runs, one behind another."""

    def runs() -> None:
        for _ in range(BURST):
            run()

    return runs


class Card(Protocol):
    """What checks want of a card."""

    @property
    def name(self) -> str:
        """The card, and the versions of what drives it."""

    @property
    def stream(self) -> int | None:
        """The stream that kernels are started on at the moment, ``None`` for the default one."""

    def upload(self, array: NDArray[Any]) -> Buffer:
        """A copy of an array in the card's memory."""

    def download(self, buffer: Buffer, like: NDArray[Any]) -> NDArray[Any]:
        """The contents of a buffer, with the dtype and shape of an array."""

    def milliseconds(self, run: Callable[[], None]) -> float:
        """The median time that the card takes for what a function starts."""

    def burst_milliseconds(self, run: Callable[[], object]) -> float:
        """The same for one run among many that follow each other."""

    def captured(self, run: Callable[[], object]) -> Callable[[], None]:
        """What a function starts, as one launch where the card can."""

    def synchronise(self) -> None:
        """Waits for everything that was started."""

    def copy_milliseconds(self, size: int) -> float:
        """The time of the card's own copy of so many bytes."""

    def matmul_milliseconds(self, rows: int, depth: int, columns: int) -> float:
        """The time of the framework's matrix product in float16."""

    def attention_milliseconds(self, heads: int, queries: int, keys: int, width: int) -> float | None:
        """The time of the framework's attention in float16, ``None`` if it has none."""

    def conv_milliseconds(self, size: int, channels: int) -> float | None:
        """The time of the framework's 3x3 convolution of ``size`` squared positions in float16, channels last."""


class TorchCard:
    """The first CUDA card, by PyTorch."""

    def __init__(self) -> None:
        """Looks for it.

        Raises:
            EngineMissingError: PyTorch is not installed, or sees no card.
        """
        try:
            import torch
        except Exception as error:  # one whose libraries are missing raises what it likes
            raise EngineMissingError(
                f"Expected torch to reach a GPU, got {type(error).__name__}: {error}. Install a CUDA build of it."
            ) from error
        if not torch.cuda.is_available():
            raise EngineMissingError(
                "Expected a CUDA card, but this torch sees none. Install a CUDA build and the driver."
            )
        self._torch: Any = torch
        torch.backends.cudnn.benchmark = True  # the convolutions that are compared with may choose their best kernel

    @property
    def name(self) -> str:
        """The card, its compute capability, and the version of PyTorch."""
        torch = self._torch
        major, minor = torch.cuda.get_device_capability()
        return f"{torch.cuda.get_device_name()} ({major}.{minor}), CUDA {torch.version.cuda}, torch {torch.__version__}"

    @property
    def stream(self) -> int:
        """PyTorch's current stream."""
        return int(self._torch.cuda.current_stream().cuda_stream)

    def upload(self, array: NDArray[Any]) -> Buffer:
        """A copy of an array in the card's memory."""
        tensor = self._torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()).cuda()
        return Buffer(int(tensor.data_ptr()), tensor)

    def download(self, buffer: Buffer, like: NDArray[Any]) -> NDArray[Any]:
        """The contents of a buffer, with the dtype and shape of an array."""
        contents: NDArray[Any] = buffer.owner.cpu().numpy().view(like.dtype).reshape(like.shape)
        return contents

    def milliseconds(self, run: Callable[[], None]) -> float:
        """The median time between two events around what a function starts."""
        torch = self._torch
        for _ in range(WARM_UP):
            run()
        times = []
        for _ in range(REPEATS):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            stop.record()
            stop.synchronize()
            times.append(float(start.elapsed_time(stop)))
        return float(np.median(times))

    def burst_milliseconds(self, run: Callable[[], object]) -> float:
        """The median time of a run in a graph of many."""
        return self.milliseconds(self.captured(burst(run))) / BURST

    def captured(self, run: Callable[[], object]) -> Callable[[], None]:
        """What a function starts, as a graph of CUDA."""
        torch = self._torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        replay: Callable[[], None] = graph.replay
        return replay

    def synchronise(self) -> None:
        """Waits for everything that was started."""
        self._torch.cuda.synchronize()

    def matmul_milliseconds(self, rows: int, depth: int, columns: int) -> float:
        """The time of matmul."""
        torch = self._torch
        left, right = (
            torch.randn(*shape, dtype=torch.float16, device="cuda") for shape in ((rows, depth), (depth, columns))
        )
        return self.burst_milliseconds(lambda: torch.matmul(left, right))

    def copy_milliseconds(self, size: int) -> float:
        """The time of a copy within the card's memory."""
        torch = self._torch
        source = torch.randint(0, 255, (size,), dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        return self.burst_milliseconds(lambda: target.copy_(source))

    def attention_milliseconds(self, heads: int, queries: int, keys: int, width: int) -> float:
        """The time of scaled_dot_product_attention."""
        torch = self._torch
        q, k, v = (
            torch.randn(1, heads, rows, width, dtype=torch.float16, device="cuda") for rows in (queries, keys, keys)
        )
        return self.burst_milliseconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v))

    def conv_milliseconds(self, size: int, channels: int) -> float:
        """The time of conv2d."""
        torch = self._torch
        options = {"dtype": torch.float16, "device": "cuda"}
        image = torch.randn(1, channels, size, size, **options).to(memory_format=torch.channels_last)
        weight = torch.randn(channels, channels, 3, 3, **options).to(memory_format=torch.channels_last)
        return self.burst_milliseconds(lambda: torch.nn.functional.conv2d(image, weight, padding=1))
