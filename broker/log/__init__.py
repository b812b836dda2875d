"""The log of a partition: the interface that a storage engine implements, and the engine that keeps it in memory."""
