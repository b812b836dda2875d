"""The in-house broker: Kafka's protocol in front of a log that a storage engine keeps.

It is a product under test and knows nothing of the suite. Start it with `python -m broker`; from code, see
`broker.server`. What it answers is what Apache Kafka 4.3.1 answers; README.md beside this file names the
differences.
"""
