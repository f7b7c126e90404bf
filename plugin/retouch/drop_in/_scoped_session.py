"""The forms in which onnxruntime takes calls, each going to the scope that is open, if one is."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retouch.drop_in._calls import Arrays, copies, feeds_of, owned, requested, vector_item
from retouch.drop_in._core import Core
from retouch.drop_in._scopes import Scope, scope_of
from retouch.drop_in._snapshot import write
from retouch.drop_in._stock import IOBinding, OrtValue, StockSession
from retouch.errors import RetouchError

if TYPE_CHECKING:
    from onnxruntime import RunOptions

_Callback = Callable[[list[NDArray[Any]], Any, str], None]


class ScopedSession(StockSession):  # type: ignore[misc] # onnxruntime has no types
    """A stock session whose calls belong to the recording or edit that is open in the current context."""

    _core: Core
    _warned = False

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """The outputs, as of a stock session."""
        scope = scope_of(self._core)
        if scope is None:
            results: list[Any] = super().run(output_names, input_feed, run_options)
            return results
        names = requested(output_names, self._core.outputs)
        return copies(self._compute(scope, feeds_of(input_feed), run_options), names)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: _Callback,
        user_data: object,
        run_options: RunOptions | None = None,
    ) -> None:
        """Calls back with the outputs, as a stock session does; recordings and edits keep the order of the calls."""
        scope = scope_of(self._core)
        if scope is None:
            super().run_async(output_names, input_feed, callback, user_data, run_options)
            return
        names = requested(output_names, self._core.outputs)
        feeds = {name: np.array(feed) for name, feed in feeds_of(input_feed).items()}
        self._warn_of(run_options)
        number = scope.begin()

        def work() -> None:
            try:
                results = copies(scope.compute(number, feeds), names)
            except RetouchError as error:
                callback([], user_data, str(error))
            else:
                callback(results, user_data, "")

        threading.Thread(target=copy_context().run, args=(work,), daemon=True).start()

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """The outputs as values, as of a stock session; in a recording or edit they lie in host memory."""
        scope = scope_of(self._core)
        if scope is None:
            values: list[OrtValue] = super().run_with_ort_values(output_names, input_dict_ort_values, run_options)
            return values
        names = requested(output_names, self._core.outputs)
        outputs = self._compute(scope, feeds_of(input_dict_ort_values), run_options)
        return [owned(outputs[name]) for name in names]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[Any],
        fetch_names: Sequence[str],
        fetches: Any,  # noqa: ANN401 # onnxruntime's vector has no public type
        fetch_devices: Sequence[Any],
    ) -> None:
        """Puts the outputs into ``fetches``, as a stock session does; in scopes they lie in host memory."""
        scope = scope_of(self._core)
        if scope is None:
            super().run_with_ortvaluevector(run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)
            return
        names = requested(fetch_names, self._core.outputs)
        given = {name: feeds[place].numpy() for place, name in enumerate(feed_names)}
        outputs = self._compute(scope, given, None)  # run options cannot be left out here
        held = len(fetches)
        for place, name in enumerate(names):
            if place < held:
                fetches[place].update_inplace(np.ascontiguousarray(outputs[name]))
            else:
                fetches.push_back(vector_item(outputs[name]))

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Computes into what is bound, as a stock session does; outputs may lie in the memory of inputs."""
        scope = scope_of(self._core)
        if scope is None or getattr(iobinding, "_session", self._sess) is not self._sess:
            super().run_with_iobinding(iobinding, run_options)  # which refuses a binding of another session
            return
        feeds, outputs = self._core.snapshot(self._providers_in_use()).read(iobinding)
        write(outputs, self._compute(scope, feeds, run_options))

    def _compute(self, scope: Scope, feeds: Mapping[str, Any], run_options: RunOptions | None) -> Arrays:
        self._warn_of(run_options)
        return scope.compute(scope.begin(), feeds)

    def _warn_of(self, run_options: RunOptions | None) -> None:
        if run_options is not None and not self._warned:
            self._warned = True
            warnings.warn("RunOptions have no effect on the calls of a recording or an edit.", stacklevel=4)

    def _providers_in_use(self) -> list[tuple[str, dict[str, str]]]:
        options = self.get_provider_options()
        return [(name, options.get(name, {})) for name in self.get_providers()]
