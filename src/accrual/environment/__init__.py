"""Environments: which pieces a decision yields."""
