"""From a torch module to an ONNX graph whose outputs were compared with the module's."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.errors import ExportError, ModelError
from retouch.export.misfit import check_memory
from retouch.models._adapter import Adapter
from retouch.models._arguments import by_position, example, nested
from retouch.models._input import Config, Input, Sizes, check_multiple
from retouch.models._onnx_fixes import fix_export

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["TorchGraph", "Traced", "config_of", "trace"]

# A protobuf file ends at 2 GB; the margin leaves room for the graph itself.
_SINGLE_FILE_LIMIT = 1_500_000_000

_WIDEST = 8

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Traced:
    """What is known of an exported graph without the graph, and so without its weights.

    Attributes:
        inputs: its inputs.
        feeds: the example feeds it was traced with.
        outputs: what the module gives for them.
    """

    inputs: tuple[Input, ...]
    feeds: Arrays
    outputs: Arrays


@dataclass(frozen=True)
class TorchGraph(Traced):
    """An exported graph.

    Attributes:
        model: the graph; its weights are the module's own memory.
    """

    model: ir.Model

    def save(self, path: Path) -> Traced:
        """Writes the graph, large weights into a file beside it; returns what is to be known of it without them."""
        weights = [value.const_value for value in self.model.graph.initializers.values()]
        size = sum(weight.nbytes for weight in weights if weight is not None)
        ir.save(self.model, path, external_data=f"{path.name}_data" if size > _SINGLE_FILE_LIMIT else None)
        return Traced(self.inputs, self.feeds, self.outputs)


def trace(module: Module, adapter: Adapter, sizes: Sizes, opset: int) -> TorchGraph:
    """The ONNX graph of a module, for some sizes.

    Raises:
        ModelError: the module cannot be called with the adapter's inputs, or torch cannot export it.
        ExportError: the configuration leaves a size open, or one does not fit the model or this machine.
    """
    config = config_of(module)
    check_multiple(sizes, adapter.multiple(config))
    inputs = adapter.inputs(config, sizes)
    check_memory([(item.name, item.shape, _WIDEST) for item in inputs], _given(sizes))
    tensors = {item.name: example(item, module, seed) for seed, item in enumerate(inputs)}
    outputs = _called(module, adapter, inputs, tensors)
    model = _exported(by_position(module, adapter, inputs), tensors, list(outputs), opset)
    return TorchGraph(inputs, _arrays(tensors), _arrays(outputs), model)


def _given(sizes: Sizes) -> dict[str, int]:
    return {name: size for name, size in dataclasses.asdict(sizes).items() if size is not None}


def config_of(module: Module) -> Config:
    """The configuration of a model of diffusers or transformers."""
    config: Any = getattr(module, "config", None)
    if config is None:
        raise ModelError(f"{type(module).__name__} has no config. Give a model of diffusers or transformers.")
    found: Config = config.to_dict() if hasattr(config, "to_dict") else dict(config)
    return found


def _called(
    module: Module, adapter: Adapter, inputs: tuple[Input, ...], tensors: dict[str, Tensor]
) -> Mapping[str, Tensor]:
    import torch

    named = {item.argument or item.name: tensors[item.name] for item in inputs}
    try:
        with torch.no_grad():
            return adapter.call(module.eval(), **nested({**adapter.arguments, **named}))
    except (RuntimeError, TypeError, ValueError) as error:
        shapes = {item.name: list(item.shape) for item in inputs}
        raise ModelError(
            f"{type(module).__name__} cannot be called with the inputs of family {adapter.family} {shapes} ({error}). "
            "Pass other sizes with --fix NAME=SIZE, or an adapter of your own."
        ) from error


def _exported(module: Module, tensors: dict[str, Tensor], outputs: list[str], opset: int) -> ir.Model:
    import torch

    try:
        with _quiet(), torch.no_grad():
            # Optimised below, after what would break the optimiser is put right.
            program = torch.onnx.export(
                module,
                tuple(tensors.values()),
                input_names=list(tensors),
                output_names=outputs,
                opset_version=opset,
                dynamo=True,
                optimize=False,
                verbose=False,
            )
            if program is None:
                raise ExportError(f"torch {torch.__version__} exported nothing; expected a program.")
            fix_export(program.model)
            program.optimize()
    except Exception as error:  # torch's exporters wrap whatever went wrong in classes of their own
        raise ModelError(
            f"torch {torch.__version__} cannot export the model to ONNX opset {opset} ({_first_line(error)}). "
            "Export it to ONNX by other means and give that file."
        ) from error
    return program.model


def _first_line(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Holds back what the exporter says about its own deprecated calls and about packages it could also serve."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    return {name: np.array(tensor.detach().cpu().numpy()) for name, tensor in tensors.items()}
