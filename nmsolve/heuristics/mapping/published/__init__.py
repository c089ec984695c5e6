"""Methods as published (M1.3, M1.4, M2, the prior art of M1.10) and the partitioners of others, to compare with."""
