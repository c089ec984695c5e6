"""Large-neighbourhood search for one node per core: many kinds of move, chosen by what they gain per unit of work."""
