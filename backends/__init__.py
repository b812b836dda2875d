"""Brokers to ask: how each is started, where it listens, what it can do, and how to hurry or hurt it.

`backends.toml` lists them; one module per family knows how to run it. Nothing here knows a scenario.
"""
