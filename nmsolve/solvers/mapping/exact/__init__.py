"""What the exact models share: integer data, star rows, board symmetries. No solver is imported here."""
