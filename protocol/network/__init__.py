"""Bayesian networks: families, limits, the search frontier, mutual information."""
