"""How quick things are, each beside another thing on the same machine in the same run: ratios, never bare seconds.

Each module is one command, `python -m benchmarks.NAME`. Nothing here is asserted: a busy machine is no failure.
"""
