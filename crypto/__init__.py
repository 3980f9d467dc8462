"""Cryptography over integers and bytes: noise, Paillier, masks, seals and signatures.

It does not know marginals, runs or HTTP.
"""
