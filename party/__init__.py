"""A party node: the shell around the protocol at the place where rows live. It does not know the curator's code."""
