"""Engines alone, logged as curves: what the learned allocation of time is fitted to."""
