"""Routes and prohibited turns for many flows: rerouting at prices that grow with load and with deadlock.

``nets`` is the problem in flat arrays, ``order`` the order of channels, ``prices`` what a link costs, ``trees`` and ``paths`` one
net's route, ``sweeps`` all of them in turn, ``negotiate`` the search, ``engine`` its place in a run.
"""
