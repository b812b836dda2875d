"""A scenario, its story and its checks for tests: complete, with only what matters to the test spelled out."""

from typing import Any

from conformance.answers import BrokerFacts, Judgement, Observation, Verdict, answer
from conformance.catalogue import Entry, Level, Scenario
from conformance.partition import Story
from conformance.results import Check

FACTS = BrokerFacts("sample", list_offsets=(1, 11))


def scenario(*needs: str) -> Scenario:
    entry = Entry("latest.sample", "latest", "A sample", Level.MUST, needs, "", "", "", "KIP-79")
    return Scenario(entry, impact="A reader stops.", revision=1, sources=(entry.source,))


def story(*needs: str) -> Story:
    return Story(scenario(*needs), FACTS, "suites/test_sample.py::test_sample[sample]", record=lambda _check: None)


def check(**changes: Any) -> Check:
    parts: dict[str, Any] = {
        "scenario": scenario(),
        "name": "latest",
        "asked": "ListOffsets v11 timestamp=-1 (latest)",
        "accepted": (answer(offset=3),),
        "observed": Observation({"error": 0, "offset": 3}),
        "judgement": Judgement(Verdict.CONFORMS),
        "test": "suites/test_sample.py::test_sample[sample]",
        "started": "2026-11-18T08:00:00.000Z",
        "duration_ms": 1.5,
    }
    return Check(**(parts | changes))
