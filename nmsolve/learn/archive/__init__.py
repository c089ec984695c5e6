"""Retrieval: solved runs are kept, and a new problem starts from the nearest relative (docs/learning.md).

``store.py`` keeps runs in a SQLite file (``packing.py``: as bytes), ``signature.py`` says how near two graphs are,
``colours.py``, ``votes.py``, ``descriptors.py``, ``smooth.py``, ``align.py`` find each node's counterpart (``effort.py`` counts
the work), ``transfer.py`` turns an old mapping into a new one, and ``engine.py`` does all that within its share of the time.
"""
