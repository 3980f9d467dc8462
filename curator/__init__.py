"""The curator and its operator's commands: the shell that runs the protocol. It does not know the party's code."""
