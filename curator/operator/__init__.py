"""The command `subn` and the notebook client, which import no server code."""
