"""Compile every kernel once, by small runs of all there is (``nmsolve doctor --warm``)."""
