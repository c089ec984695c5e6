"""Second implementations of the bounds, for re-checking certificates; nothing here is used to find one."""
