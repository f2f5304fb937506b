"""The decision service: live bandits over HTTP, with keys, limits, metrics and a page.

Other rooms start it with `server.serve`, read its configuration with `settings.load`, and make keys with
`keys`. Simulated traffic uses `bandit_pool`, `traffic_routes`, `operations` and `messages`.
"""
