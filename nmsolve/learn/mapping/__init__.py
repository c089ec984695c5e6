"""Method M1: a learned policy that places logical nodes on the cores of processors (M1.1 to M1.8)."""
