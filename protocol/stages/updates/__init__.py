"""Phase 3, one update rule a module: its steps, their prices, its stages and its `RULE`."""
