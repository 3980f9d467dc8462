"""Comparison of a published table with the party's own rows; its findings never leave this machine."""
