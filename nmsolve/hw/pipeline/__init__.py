"""What pipelines cost (M5.2): stages, layers in tiles, and the way down to single cores."""
