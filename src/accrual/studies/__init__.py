"""Studies: the paper, the gallery, sweeps, benchmarks and the demo."""
