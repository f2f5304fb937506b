"""Simulations cut into cells: computed once, kept on disk, on the cores of one machine or on a Ray cluster."""
