"""What every search shares, whatever the problem: incumbent, events, budget, child processes, portfolio.

Nothing here knows what a solution means; a :class:`~nmsolve.solvers.search.checker.Checker` does. See docs/search.md.
"""
