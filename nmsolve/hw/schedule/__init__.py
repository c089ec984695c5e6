"""What a schedule costs on a component of execution units, and what happens when its queues run (M4)."""
