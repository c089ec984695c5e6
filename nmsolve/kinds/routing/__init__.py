"""Routes and prohibited turns of a mapping's flows."""
