"""Runs in progress: from a plan to the last answer."""
