"""Templates, and formats of numbers for people."""
