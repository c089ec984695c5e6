"""What an answer looks like: reports, sentences, figures, pages and pictures."""
