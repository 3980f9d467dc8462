"""Benchmarks: `python -m tests.benchmarks.NAME`, or `make bench` for the ratios and slopes.

It does not know what is measured. As in the product's programs, BLAS uses one thread unless the environment says
otherwise: threads that share small matrices wait for each other.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
