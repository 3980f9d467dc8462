"""The JSON interface: its routes, the authentication of callers, and its errors."""
