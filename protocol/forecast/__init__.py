"""What a plan will cost and how good its table will be, from public numbers alone."""
