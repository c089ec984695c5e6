"""Routes on a machine: named rules, channel dependencies, numberings that prove them free of deadlock, and their checkers."""
