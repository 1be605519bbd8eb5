"""The AG-UI protocol as pure functions: requests in, events, snapshots and frames out."""
