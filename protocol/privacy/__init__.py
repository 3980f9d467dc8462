"""What noise costs and how much of it stays: privacy definitions, noise modes, layouts of a pass."""
