"""Which engine of automatic mode should run for how long: a table of logged runs, and plans made from it."""
