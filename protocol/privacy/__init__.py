"""Privacy definitions (the cost of noise), noise modes (the noise that stays in a sum), and layouts of a pass."""
