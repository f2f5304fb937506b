"""Simulations cut into cells: each is computed once and kept on disk.

`cells` cuts and gathers, `runner` computes what is missing on the cores of this machine, `on_ray` does so on
a Ray cluster, and `rows` writes and reads the files.
"""
