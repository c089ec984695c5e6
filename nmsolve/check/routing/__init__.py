"""Routes of flows: rules, deadlock, bounds."""
