"""Lower bounds that need no solver, each with a certificate: see docs/bounds.md."""
