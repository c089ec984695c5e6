"""The joint problem: partition, placement and routes decided at once; and the exact models of link loads.

``links`` states messages, links and trees as whole numbers, ``rules`` is the exact model (``cpsat`` and ``mip`` for their
solvers), ``problem`` says what a mapping with its routes is worth, ``steiner`` finds best trees on small boards, ``engines`` and
``api`` are what the search and the command line call.
"""
