"""What the exact models share: integer data, rules, star rows, board symmetries."""
