"""Views (NOCD): groups of variables such that every pair of variables lies in exactly one group."""
