"""How a machine behaves: scores, routes, energy, link loads, chip presets."""
