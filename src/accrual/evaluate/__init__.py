"""Say what a log, or a few numbers, tell about policies.

`compare` simulates policies on what a log has paid, `replay` judges them by a log that was collected at
random, and `plan` says how many decisions a verdict takes.
"""
