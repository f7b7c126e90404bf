"""Settings for all tests."""

from __future__ import annotations

import hypothesis

# Time limits per example fail at random on a busy machine.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.load_profile("default")
