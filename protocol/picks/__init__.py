"""Private choices on a party's own rows, by a score of its counts or by the model (score M)."""
