"""One of each that nmsolve takes from other packages: an engine, a bound with its re-check, a graph format, a machine."""
