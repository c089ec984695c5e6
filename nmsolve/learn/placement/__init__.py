"""A learned policy for placements: soft positions refined by rounds of messages, decoded by linear assignment."""
