"""What policies play: `Problem` with its spreads and laws, problems with contexts, and named problems.

`spreads`, `laws`, `problem` and `contexts` define problems. `paper` and `gallery` hold named ones as data,
the gallery's made by `families`.
"""
