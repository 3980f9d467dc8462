"""From a finished run to published files and a report."""
