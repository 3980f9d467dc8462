"""The order of effects: charge, answer, keep, deliver."""
