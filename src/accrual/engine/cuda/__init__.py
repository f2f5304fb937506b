"""The CUDA engine: all policies and runs of a simulation at once, on one NVIDIA GPU."""

from accrual.engine.cuda.engine import play as play
