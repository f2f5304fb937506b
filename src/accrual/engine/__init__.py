"""Everything that loops over rounds.

`simulate.simulate` plays policies on a problem and returns a `result.Result`. It uses `fast_loop` (plain
problems, and problems whose laws change), `general_loop` (problems with contexts) or `cuda` (plain problems
on a GPU). `batches` plays services that decide in daily batches, by the general loop too. `recording` records
one whole run.
"""
