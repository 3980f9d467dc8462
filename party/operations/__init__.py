"""Health and metrics: how the node is doing."""
