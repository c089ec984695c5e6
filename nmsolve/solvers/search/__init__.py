"""What serves every problem: incumbent, budget, events, child processes, portfolio."""
