"""What is studied with the other rooms: the paper, the gallery, sweeps, the benchmark and the demo.

The command line imports `paper` and `gallery` by their faces, `problem_files` (what to simulate), `sweep`,
`bench`, `demo` and `fit_on_ray`.
"""
