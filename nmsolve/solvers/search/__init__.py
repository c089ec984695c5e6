"""What every search shares, whatever the problem: incumbent, events, budget, child processes, portfolio.

Nothing here knows what a solution means; a :class:`~nmsolve.solvers.search.referee.Referee` does. See docs/search.md.
"""
