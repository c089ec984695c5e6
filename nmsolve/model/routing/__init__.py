"""The routing problem: flows between cores, turns a router allows, routes and what is wrong with them.

``flows`` is the traffic of a mapping between cores, ``turns`` what routers forbid, ``problem`` the question
(``objectives``: what can be wanted), ``routes`` the answer, ``check`` its rules stated a second time, ``files`` routes on disk.
"""
