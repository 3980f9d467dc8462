"""A grid of simulated settings, its results and figures."""
