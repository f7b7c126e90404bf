"""One export in a process of its own: ``python -m retouch.validation.size._export REQUEST`` prints a line per step."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from retouch.bench import resident
from retouch.bundle import Bundle
from retouch.export import export_onnx
from retouch.models import TorchOptions, export_torch
from retouch.validation.size._steps import Request, Step
from retouch.validation.size._unet import save_unet

_RESET = Path("/proc/self/clear_refs")
_PEAK = "5"
"""What resets the peak of the resident memory, as proc(5) says."""


class _Log:
    """Prints a line when a step begins, and what the step before took."""

    def __init__(self) -> None:
        self._name, self._start = "start", time.perf_counter()

    def begin(self, name: str) -> None:
        """Ends one step and begins another."""
        now = time.perf_counter()
        step = Step(name=self._name, seconds=now - self._start, peak=resident().peak)
        _print({"done": step, "begun": name})
        _RESET.write_text(_PEAK, encoding="ascii")
        self._name, self._start = name, now


def _print(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _run(request: Request) -> None:
    folder, log = Path(request["folder"]), _Log()
    graph, bundle = folder / "model.onnx", folder / f"{request['kind']}.bundle"
    if request["kind"] == "save":
        log.begin("save")
        save_unet(folder / "unet", small=request["small"])
    elif request["kind"] == "torch":
        _report(export_torch(folder / "unet", bundle, TorchOptions(graph=graph), tell=log.begin), log)
    else:
        _report(export_onnx(graph, bundle, tell=log.begin), log)


def _report(bundle: Bundle, log: _Log) -> None:
    log.begin("")
    manifest = bundle.manifest
    _print(
        {
            "weights": manifest.model.weights_bytes,
            "bundle": sum(spec.bytes for spec in manifest.files.values()),
            "verification": dict(manifest.verification),
        }
    )


if __name__ == "__main__":
    _run(json.loads(sys.argv[1]))
