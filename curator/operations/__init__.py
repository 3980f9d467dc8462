"""Health, metrics and logs: how the service is doing."""
