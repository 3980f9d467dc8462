"""Health, metrics and logs of the service."""
