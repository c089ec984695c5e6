"""More than one machine, on Ray: the same search with another transport. Ray is imported only where a cluster is asked for."""
