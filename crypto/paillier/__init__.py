"""Packed Paillier without the secret: keys, slots, fast powers, blinding, and the hidden indicator."""
