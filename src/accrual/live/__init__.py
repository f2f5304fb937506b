"""The live side: a bandit decides, stores its events, and folds them into a policy's statistics.

Other rooms may use `bandit` (Bandit), `commit` (requests), `config` (options), `archive`, `clock`, `ledger`,
`log_follower`, `state`, `context_worth`, `verify_snapshots`, and what `watch` names. Only this room uses
`kernels` and `contexts`.
"""
