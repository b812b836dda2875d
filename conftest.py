"""The pytest surface: options, the backend and the partition that a scenario is handed, and what a verdict
means to pytest. Wiring only; what is asked, judged and written is in `conformance`."""

from __future__ import annotations

import contextlib
import random
import signal
from collections.abc import Container, Generator, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from backends import registry
from backends.presets import prepare
from backends.processes import Owner, sweep
from backends.registry import LEVERS
from backends.running import DidNotStart, RunningBackend
from backends.sharing import Session
from conformance import baselines, profiles
from conformance.answers import Judgement, Silence, Verdict
from conformance.baselines import BadBaseline, Baseline
from conformance.catalogue import Level, Scenario, scenario_of
from conformance.cluster import Cluster, StepFailed
from conformance.explain import explain
from conformance.partition import Partition, Story
from conformance.results import ResultFile, RunInfo, check_line, new_run_id, oracle_line
from conformance.security import PLAINTEXT, BadClientConfig, Security, read_client_config
from conformance.telling import decline, objection, outcome, telling
from conformance.wire import WireError

RUN = pytest.StashKey[RunInfo]()
SESSION = pytest.StashKey[Session]()
STORY = pytest.StashKey[Story]()
BASELINES = pytest.StashKey[list[Baseline]]()

STRIKES = 3
"""A broker that was mute at the start of three stories is not asked again: each try costs ten seconds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("offset conformance")
    group.addoption(
        "--backend",
        action="append",
        default=[],
        metavar="NAME[@VERSION][=IMAGE]",
        help="a broker of backends.toml to run the suites against; may be given several times "
        "(default: apache-kafka at its newest version)",
    )
    group.addoption(
        "--bootstrap",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="a broker that runs already; may be given several times",
    )
    group.addoption(
        "--client-config",
        metavar="FILE",
        help="TLS and SASL for --bootstrap and containers: lines of librdkafka's properties",
    )
    group.addoption("--results", default="out/results", metavar="DIR", help="where result files go (out/results)")
    group.addoption("--level", type=str.upper, choices=list(Level), help="only scenarios of this level")
    group.addoption(
        "--scenario",
        action="append",
        default=[],
        metavar="ID",
        help="only this scenario, or all that match, as in 'latest.*'; may be given several times",
    )
    group.addoption(
        "--profile", metavar="NAME[@VERSION]", help="only scenarios of this profile (offsets list profiles)"
    )
    group.addoption(
        "--baseline",
        action="append",
        default=[],
        metavar="FILE",
        help="what a backend is known to answer otherwise: a listed deviation must deviate (xfail), and every other "
        "check must conform; may be given several times",
    )
    group.addoption("--run-id", default="", metavar="ID", help="join the result files of another invocation")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[BASELINES] = [_baseline(file) for file in config.getoption("--baseline")]
    worker = getattr(config, "workerinput", None)
    if worker is None:
        run_id = config.getoption("--run-id") or new_run_id()
        config.stash[RUN] = RunInfo(run_id, "main", random.SystemRandom().randrange(2**31))
        config.stash[SESSION] = Session()
    else:
        config.stash[RUN] = RunInfo(worker["run_id"], worker["workerid"], worker["seed"])
        config.stash[SESSION] = Session(worker["session"], Owner.from_json(worker["owner"]))
    config.pluginmanager.register(_Interruption(), "conformance-interruption")
    # pytest tears fixtures down on Ctrl-C, and so stops brokers; a polite kill and a closed terminal deserve the same.
    for polite in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(polite, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what interrupted workers left; they belong to the process that started them."""
    session = config.stash.get(SESSION, None)
    if session is not None and not hasattr(config, "workerinput") and session.directory.exists():
        from backends import engine

        engine.end(session)


def _baseline(file: str) -> Baseline:
    try:
        return baselines.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, BadBaseline) as error:
        raise pytest.UsageError(f"--baseline {file}: {error}") from error


def _rules(config: pytest.Config) -> tuple[str, ...] | None:
    name = config.getoption("--profile")
    try:
        return profiles.choose(name).rules if name else None
    except profiles.UnknownProfile as error:
        raise pytest.UsageError(str(error)) from error


class _Interruption:
    """Remembers that somebody ended the run, so that no footer claims it was complete."""

    happened = False

    def pytest_keyboard_interrupt(self) -> None:
        self.happened = True


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the run's identity to a worker of pytest-xdist."""
    run, session = node.config.stash[RUN], node.config.stash[SESSION]
    node.workerinput |= {"run_id": run.run_id, "seed": run.seed}
    node.workerinput |= {"session": session.id, "owner": session.owner.as_json()}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    told = {item: scenario for item in items if (scenario := scenario_of(getattr(item, "function", None)))}
    level, patterns, rules = config.getoption("--level"), config.getoption("--scenario"), _rules(config)
    if level or patterns or rules is not None:
        kept = [
            item
            for item, scenario in told.items()
            if (not level or scenario.level == level)
            and (rules is None or scenario.id in rules)
            and (not patterns or any(fnmatchcase(scenario.id, pattern) for pattern in patterns))
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept
    columns: dict[pytest.Item, str] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "column" in callspec.params:
            backend, _address = callspec.params["column"]
            columns[item] = backend.column
    order = list(dict.fromkeys(columns.values()))

    def position(item: pytest.Item) -> tuple[int, bool]:
        """By backend, so that each is started once; stories that hurt it come last, because a young broker is
        slow to expire records: Kafka 3.7 by 30 s."""
        return order.index(columns[item]) if item in columns else -1, item in told and hurts(told[item])

    items.sort(key=position)


def hurts(scenario: Scenario) -> bool:
    return not LEVERS.isdisjoint(scenario.needs)


# -- backends


@dataclass
class Column:
    """A backend that runs, the file that its checks go to, and what is known of it, if a baseline was given."""

    broker: RunningBackend
    results: ResultFile
    baseline: Baseline | None = None
    strikes: int = 0

    @property
    def version(self) -> str:
        return baselines.version_in(self.broker.backend.version, self.broker.build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "column" not in metafunc.fixturenames:
        return
    options = metafunc.config.option
    names = options.backend or ([] if options.bootstrap else ["apache-kafka"])
    try:
        chosen = [(registry.choose(name), "") for name in names]
        _security(metafunc.config)
    except (registry.UnknownBackend, BadClientConfig) as error:
        raise pytest.UsageError(str(error)) from error
    chosen += [(registry.external(address), address) for address in options.bootstrap]
    ids = [backend.column for backend, _ in chosen]
    metafunc.parametrize("column", chosen, ids=ids, indirect=True, scope="session")


def _security(config: pytest.Config) -> Security:
    path = config.getoption("--client-config")
    return read_client_config(Path(path)) if path else PLAINTEXT


@pytest.fixture(scope="session")
def column(request: pytest.FixtureRequest) -> Iterator[Column]:
    """One backend, started once for all its scenarios. One that does not start errors its own tests only."""
    backend, bootstrap = request.param
    config = request.config
    sweep()
    results = ResultFile(Path(config.getoption("--results")), config.stash[RUN], backend.column)
    with contextlib.closing(results), contextlib.ExitStack() as stack:
        try:
            broker = prepare(backend, bootstrap=bootstrap, session=config.stash[SESSION], security=_security(config))
            stack.enter_context(broker)
        except DidNotStart as error:
            results.not_run(str(error))
            results.footer()
            pytest.fail(f"{backend.column} not run: {error}", pytrace=False)
        results.header(version=backend.version, build=broker.build, oracle=broker.oracle)
        known = [each for each in config.stash[BASELINES] if each.is_for(backend.column)]
        yield Column(broker, results, known[0] if known else None)
        interruption = config.pluginmanager.get_plugin("conformance-interruption")
        if not (interruption.happened or request.session.shouldfail or request.session.shouldstop):
            results.footer()


# -- stories


@pytest.fixture
def partition(request: pytest.FixtureRequest, column: Column) -> Iterator[Partition]:
    """A partition of the scenario's own. Where the backend cannot have the scenario, that is recorded instead."""
    scenario = scenario_of(request.node.function)
    assert scenario is not None, f"{request.node.nodeid} holds a partition but is no @scenario"
    broker = column.broker
    story = Story(scenario, broker.facts, request.node.nodeid, column.results.check)
    request.node.stash[STORY] = story
    with _turn(broker, story), _connect(column, story) as cluster:
        judgement = objection(story, broker.backend.capabilities, cluster.api_versions)
        if judgement:
            decline(story, judgement)
            _hold_against_baseline(request.config, column, story)
            pytest.skip(f"{judgement.verdict}: {judgement.reason}")
        partition = Partition(broker, cluster, story)
        yield partition
        if not broker.disposable:
            partition.tidy_up()


@contextlib.contextmanager
def _turn(broker: RunningBackend, story: Story) -> Iterator[None]:
    """The broker for as long as the story lasts, alone if it is going to hurt it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(broker.turn(alone=hurts(story.scenario)))
        except StepFailed as error:
            decline(story, Judgement(Verdict.INCONCLUSIVE, reason=f"no story could begin: {error}"))
            pytest.fail(f"{Verdict.INCONCLUSIVE}: {error}", pytrace=False)
        yield


def _connect(column: Column, story: Story) -> Cluster:
    """A client of the story's own; a broker that is gone or mute makes the story broken or inconclusive."""
    try:
        if column.strikes >= STRIKES:
            verdict, reason = Verdict.INCONCLUSIVE, f"not asked: the broker was mute at the start of {STRIKES} stories"
        else:
            cluster = Cluster(column.broker.bootstrap, security=column.broker.security)
            column.strikes = 0
            return cluster
    except WireError as error:
        column.strikes += error.silence is Silence.TIMEOUT
        gone = error.silence is Silence.UNREACHABLE
        verdict, reason = Verdict.BROKEN if gone else Verdict.INCONCLUSIVE, f"no story could begin: {error}"
    decline(story, Judgement(verdict, reason=reason))
    pytest.fail(f"{verdict}: {reason}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Tell the story, then let pytest know how it ended."""
    story = pyfuncitem.stash.get(STORY, None)
    if story is None:
        return (yield)
    with telling(story):
        yield
    verdict = outcome(story.checks)
    _hold_against_baseline(pyfuncitem.config, pyfuncitem.funcargs["column"], story)
    if verdict in (Verdict.UNSUPPORTED, Verdict.NOT_APPLICABLE):
        pytest.skip(f"{verdict}: {story.checks[-1].judgement.reason}")
    if verdict is not Verdict.CONFORMS:
        same = {check.id for check in story.checks if check.judgement.verdict is verdict}
        pytest.fail(_explanation(pyfuncitem.config, story, same), pytrace=False)
    return True


def _hold_against_baseline(config: pytest.Config, column: Column, story: Story) -> None:
    """With a baseline, end the test here unless the story conforms or is declined as it was expected to.

    What the baseline lists must come as listed, so that an entry which is no longer true fails: a strict xfail,
    check by check.
    """
    if column.baseline is None:
        return
    verdicts = {check.id: check.judgement.verdict for check in story.checks}
    surprises = baselines.surprises(column.baseline, column.version, verdicts)
    if surprises:
        told = "\n".join(f"{each.check}: expected {each.expected}, got {each.got}" for each in surprises)
        explained = _explanation(config, story, {each.check for each in surprises if each.got != Verdict.CONFORMS})
        pytest.fail(f"not as the baseline expects:\n{told}\n\n{explained}".rstrip(), pytrace=False)
    if outcome(story.checks) in (Verdict.DEVIATES, Verdict.INCONCLUSIVE, Verdict.BROKEN):
        entries = (column.baseline.entry(id, column.version) for id in verdicts)
        pytest.xfail("; ".join(dict.fromkeys(entry.reason for entry in entries if entry)))


def _explanation(config: pytest.Config, story: Story, checks: Container[str]) -> str:
    """These checks of a story in words, with Apache Kafka's answer where this run has one."""
    results = Path(config.getoption("--results"))
    run = config.stash[RUN]
    texts = []
    for check in story.checks:
        if check.id in checks:
            line = check_line(check) | {"backend": story.facts.backend}
            texts.append(explain(line, oracle_line(results, run.run_id, check.id)))
    return "\n\n".join(texts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    story = item.stash.get(STORY, None)
    if story is not None and story.checks:
        report.verdict = str(outcome(story.checks))
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A story that does not say whether the broker conforms is an error, not a failure of the broker."""
    verdict = getattr(report, "verdict", None)
    if report.failed and report.when == "call" and verdict in (Verdict.INCONCLUSIVE, Verdict.BROKEN):
        return "error", "E", verdict.upper()
    return None
