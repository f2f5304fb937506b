"""What every room may use: errors, durations, groups of ages, random numbers, files, progress and pictures.

`jit` holds all that knows numba's compiler.
"""
