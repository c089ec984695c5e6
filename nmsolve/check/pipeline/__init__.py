"""Plans of stages: loads, memory, energy, bounds."""
