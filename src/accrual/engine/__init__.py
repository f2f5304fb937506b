"""Everything that loops over rounds.

`simulate.simulate` plays policies on a problem and returns a `result.Result`. It uses `fast_loop` (plain
problems, and problems that change), `context_loop` (problems with contexts) or `cuda` (plain problems on a
GPU). `batch_loop` plays services that decide in daily batches; `recording` records one whole run.
"""
