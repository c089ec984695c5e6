"""Method M5: a learned policy that cuts a pipeline into stages by actions (M5.3 to M5.6)."""
