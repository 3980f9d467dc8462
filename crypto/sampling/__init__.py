"""Exact samplers over integers: discrete Laplace and Gaussian noise, shares of it, and private choices."""
