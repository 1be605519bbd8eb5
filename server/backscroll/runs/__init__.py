"""Runs: registry, runner, recorder of call records, hub and folded rows."""
