"""Simulations, evaluations and the demonstration, by somebody who may see all rows."""
