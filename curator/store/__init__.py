"""What the curator keeps in its database."""
