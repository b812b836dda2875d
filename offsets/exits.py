"""The exit codes of every command; others may script against them."""

from enum import IntEnum


class Exit(IntEnum):
    AS_EXPECTED = 0
    DEVIATION = 1  # an answer that nobody expected
    STALE_BASELINE = 2  # fixed, but still listed as a deviation
    INCONCLUSIVE = 3  # no answer that could be judged
    ENVIRONMENT = 4  # the machine, the network or the suite itself
    USAGE = 5  # the command line, or a file that it names


class CommandFailed(Exception):
    """A command cannot go on. The text is one sentence for a person that says what to do next."""

    def __init__(self, sentence: str, code: Exit = Exit.ENVIRONMENT) -> None:
        super().__init__(sentence)
        self.code = code
