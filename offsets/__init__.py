"""The command line: one module per command, so that a command imports only what it needs.

For: options, progress, words for a person, exit codes. Left to others: asking and judging (`conformance` and
`suites`, run by pytest), brokers (`backends`), and the matrix (`reports`). This is the only room that imports
them all.
"""
