"""Routes and prohibited turns by exact models, bounds and a portfolio of engines; ``api.route`` is the way in."""
