"""Mappings: objectives walked link by link, and what a report says of them."""
