"""AG-UI: reading input, encoding events, snapshots, joins and dialects."""
