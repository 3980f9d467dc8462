"""The JSON interface: routes, who may call them, and how errors are told."""
