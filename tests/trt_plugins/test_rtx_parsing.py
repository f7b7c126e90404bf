"""TensorRT-RTX's parser takes every node of every family's graphs, whatever the moments, single edits and stacks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorrt_rtx as trt

from retouch.engines.tensorrt import Messages, logger
from retouch.models import export_torch
from retouch.trt_plugins._graphs import graphs_of, load_graph
from retouch.trt_plugins._parse import parse, strongly_typed
from tests.models.conftest import tiny  # noqa: F401  (a fixture)
from tests.models.test_families import CASES


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_graph_is_taken(case: str, tiny: Callable[..., Any], tmp_path: Path) -> None:  # noqa: F811
    name, options = CASES[case]
    tiny(name).save_pretrained(tmp_path / "model")
    export = dataclasses.replace(options.export, verify=False)
    bundle = export_torch(tmp_path / "model", tmp_path / "bundle", dataclasses.replace(options, export=export))
    manifest = bundle.manifest
    stacked = all(stack.graph is not None for stack in manifest.stacked.values())
    graphs = graphs_of(bundle, tuple(manifest.edits), stacked=stacked)
    assert len(graphs) > len(manifest.edits)
    for graph in graphs:
        messages = Messages()
        log = logger(trt, messages)
        network = trt.Builder(log).create_network(strongly_typed(trt))
        parser = parse(trt, network, log, load_graph(bundle, graph), messages, graph.file)
        assert network.num_layers > 0 and messages.errors == []
        del parser
