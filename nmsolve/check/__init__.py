"""The checker: second implementations of rules, objectives and bounds. Imports ``model`` and nothing else of ours."""
