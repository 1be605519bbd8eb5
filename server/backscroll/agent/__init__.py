"""Agents: assembly, the loop, tool batches, context, pauses and events."""
