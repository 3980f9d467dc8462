"""The stages of a run, one module each: what is asked, answered and concluded."""
