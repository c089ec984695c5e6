"""The mapping problem: node to core (partition, placement and both at once)."""
