"""Exact samplers over integers: discrete Laplace and Gaussian noise, shares of Laplace noise, and private choices."""
