"""What ``import nmsolve`` offers: the commands as functions of objects, with the answers that the commands write as files."""
