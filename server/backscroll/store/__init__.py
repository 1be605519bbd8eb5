"""Redis: the thread log, memories, run leases and the embedded server."""
