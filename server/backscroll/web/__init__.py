"""HTTP and WebSocket: the AG-UI endpoints, the operator API and the console."""
