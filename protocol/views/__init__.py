"""NOCD views: every pair of variables in exactly one view."""
