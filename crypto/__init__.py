"""Integers and bytes: noise, Paillier, masks, seals, signatures. It does not know marginals, runs or HTTP."""
