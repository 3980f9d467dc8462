"""A run as two state machines, the curator's and a party's, and its results."""
