"""Policies: one file each, listed in `catalog`."""
