"""Templates, and how numbers are written for people."""
