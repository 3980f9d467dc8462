"""Bayesian networks: families, limits, the search frontier and mutual information."""
