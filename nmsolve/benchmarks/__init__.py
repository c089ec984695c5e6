"""``nmsolve bench``: many runs of many methods on many instances, kept in a database and compared."""
