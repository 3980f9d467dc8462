"""Secure sums in each noise mode: the party's half and the curator's half."""
