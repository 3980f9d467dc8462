"""Private choices on a party's own rows, by the scores I, F and R or by the model (score M)."""
