"""The integrated multilevel mapper: many nodes per core, the true objective at every level."""
