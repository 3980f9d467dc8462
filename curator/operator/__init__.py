"""The command `subn` and the notebook client: no server code in reach."""
