"""Forecasts of a plan's cost and of its table's error, from public numbers alone."""
