"""The command line: typer commands, progress, reports."""
