"""The bound ``spread``: traffic is led along paths to pairs whose distances are known to add up (docs/bounds.md, "spread")."""
