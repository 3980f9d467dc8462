"""The stages of a run, one module each: tasks, answers and conclusions."""
