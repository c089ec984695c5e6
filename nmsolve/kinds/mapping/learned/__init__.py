"""``nmsolve bench learn``: learned parts beside what they replace, at equal CPU time, on graphs that no model has seen."""
