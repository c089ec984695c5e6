"""What is asked and what is answered: frozen data, validated once, with no solver in sight."""
