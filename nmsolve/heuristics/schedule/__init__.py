"""Fast methods for schedules: the published rule (M4.5), lists, genetic and tabu search."""
