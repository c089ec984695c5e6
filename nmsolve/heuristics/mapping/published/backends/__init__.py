"""Graph partitioners of others as engines, to compare with in one command; each is an optional extra."""
