"""Published files and the report of a finished run."""
