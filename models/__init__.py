"""Adapters for model families: which input is editable, and on which axes."""
