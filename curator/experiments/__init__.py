"""Simulations, evaluations and the demonstration, for people who may see all rows."""
