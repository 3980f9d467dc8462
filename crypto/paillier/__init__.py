"""Packed Paillier without the secret key: public keys, slots, fast powers, blinding, and the hidden indicator."""
