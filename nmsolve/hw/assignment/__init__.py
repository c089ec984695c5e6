"""What an assignment costs (M3.6, M3.7): evaluators, machines of unlike processors, the function library."""
