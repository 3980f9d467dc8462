"""Private choices on a party's own rows: scores I, F, R, and M by the model."""
