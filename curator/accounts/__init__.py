"""Accounts of everybody who may call: operators, their sessions, and parties."""
