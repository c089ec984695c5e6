"""What a kind of problem is to the shell: statement, run, files, checks, fronts, page. A folder per kind; the rest serves all."""
