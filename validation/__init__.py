"""Reference models, quality metrics and benchmarks."""
