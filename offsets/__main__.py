"""`offsets`: the commands, their options and help texts. What each does is in the module of its name."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn, TypeAlias

from offsets.exits import CommandFailed, Exit

EXIT_CODES = """exit codes:
  0  as expected
  1  a deviation that was not expected
  2  a baseline lists a deviation that is fixed
  3  inconclusive: no answer that could be judged
  4  the machine, the network or the suite itself
  5  a mistake on the command line, or in a file that it names
"""


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


class Parser(argparse.ArgumentParser):
    """argparse exits with 2 on a mistake, which here means something else."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(Exit.USAGE, f"{self.prog}: {message}\n")


def parser() -> Parser:
    root = Parser(
        prog="offsets",
        description="Asks Kafka-compatible brokers the same offset questions and shows who answers like Apache Kafka.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_list(commands)
    _add_smoke(commands)
    _add_run(commands)
    _add_nightly(commands)
    _add_report(commands)
    _add_check(commands)
    _add_baseline(commands)
    _add_diff(commands)
    _add_show(commands)
    _add_get(commands)
    _add_mutants(commands)
    return root


def _add(commands: Commands, name: str, help: str, more: str = "") -> Parser:
    return commands.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.",
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_list(commands: Commands) -> None:
    command = _add(commands, "list", "list scenarios, backends, profiles or mutants: what could be run, before it is")
    command.add_argument("what", choices=("scenarios", "backends", "profiles", "mutants"))
    command.add_argument("--all", action="store_true", help="scenarios of the catalogue that are not written yet, too")


def _add_smoke(commands: Commands) -> None:
    command = _add(
        commands,
        "smoke",
        "check that a backend is what it says it is: boots, answers, has the capabilities it declares",
        "One short scenario per declared capability. A wrong answer is not smoke's concern (the suites are for\n"
        "that); a capability that is declared and not there is, and ends in exit code 1.",
    )
    _add_backends(command, required=True)


def _add_run(commands: Commands) -> None:
    command = _add(
        commands,
        "run",
        "run the suites against backends, with live progress, then print the matrix",
        "Without -b and --bootstrap: the embedded defaults, which need neither Docker nor an installed Java.\n"
        "The exit code is about the run and not about the brokers: 0 when the matrix is whole, 1 when Apache Kafka\n"
        "itself deviates (then the suite is in doubt), 3 when Apache Kafka gave no answer that could be judged,\n"
        "4 when no backend ran. pytest suites --backend NAME is the command that fails on a deviation.",
    )
    _add_running(command)


def _add_nightly(commands: Commands) -> None:
    command = _add(
        commands,
        "nightly",
        "run the suites, add the run to history, and tell in ten lines what changed since the last good night",
        "Without -b and --bootstrap: the embedded defaults. A backend that does not start stops only its own column.\n"
        "A night is good for a backend if nothing broke since its last good night, so that what broke stays news\n"
        "until it is mended or its baseline lists it. Exit codes as those of check; 4 when a backend did not run.",
    )
    _add_running(command)
    command.add_argument("--history", metavar="DIR", help="where history is kept (DIR/history, in the --out directory)")
    _add_baselines(command)
    _add_master(command)


def _add_report(commands: Commands) -> None:
    command = _add(
        commands,
        "report",
        "fold result files into the matrix with Spark, print it and write it to DIR/report",
        "A column shows the newest run of its backend among the files given. Every line is accounted for: what\n"
        "cannot be read is counted and kept in DIR/report/malformed.ndjson. With --history the files are also added\n"
        "to the history there, once however often they are given, and the report tells what changed since the last\n"
        "good night. DIR may be a path or a URI that Spark can write to. Exit codes as those of run.",
    )
    command.add_argument("results", nargs="+", metavar="RESULTS", help="result files, or directories of them")
    command.add_argument("--out", default="out", metavar="DIR", help="where the report goes (out)")
    command.add_argument("--history", metavar="DIR", help="where history is kept, and what it tells is reported")
    _add_baselines(command)
    _add_master(command)


def _add_check(commands: Commands) -> None:
    command = _add(
        commands,
        "check",
        "hold a run against the baseline of its backend, and fail on what was not expected",
        "Where several things are not as expected, the lowest exit code but 0 wins: an unexpected deviation (1),\n"
        "then a listed one that is fixed (2), then what could not be judged, was not asked or is flaky (3).",
    )
    _add_run_argument(command, "run")
    command.add_argument("--baseline", required=True, metavar="FILE", help="what is known of the backend, as TOML")
    _add_profile(command, "judge only the rules of this profile")
    _add_results(command)


def _add_baseline(commands: Commands) -> None:
    command = _add(commands, "baseline", "propose a baseline from a run, or check one that is written")
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    write = _add(
        actions,
        "write",
        "write to FILE what a run deviates in; what FILE says already and the run bears out stays as it is",
    )
    _add_run_argument(write, "run")
    write.add_argument("backend", metavar="BACKEND", help="the column, as in apache-kafka@4.3.1")
    write.add_argument("file", metavar="FILE", help="the baseline, as in baselines/NAME.toml")
    _add_results(write)
    lint = _add(actions, "lint", "check baselines: ids that do not exist, entries without reason or link, doubles")
    lint.add_argument("files", nargs="+", metavar="FILE")


def _add_diff(commands: Commands) -> None:
    command = _add(
        commands,
        "diff",
        "tell what changed between two runs, and which input moved: broker, client, scenario, suite or host",
        "A scenario that we changed ourselves is told as that, and is nobody's regression.",
    )
    _add_run_argument(command, "run_a")
    _add_run_argument(command, "run_b")
    _add_results(command)


def _add_scenarios(command: Parser) -> None:
    _add_scenario(command)
    _add_profile(command, "only the scenarios of this profile")


def _add_baselines(command: Parser) -> None:
    command.add_argument(
        "--baselines",
        default="baselines",
        metavar="DIR",
        help="where baselines are: what they list is no news (baselines)",
    )


def _add_master(command: Parser) -> None:
    command.add_argument("--master", default="local[*]", metavar="URL", help="the Spark master (local[*])")


def _add_running(command: Parser) -> None:
    """What whoever runs the suites may choose."""
    _add_backends(command, required=False)
    _add_scenarios(command)
    command.add_argument("--out", default="out", metavar="DIR", help="where results, report and log go (out)")
    command.add_argument(
        "--jobs",
        type=_positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="how many backends run at the same time (as many as there are cores)",
    )


def _add_run_argument(command: Parser, name: str) -> None:
    command.add_argument(
        name, metavar=name.upper(), help="a run id, the beginning of one, 'last', or 'last~1' for the one before"
    )


def _add_results(command: Parser) -> None:
    command.add_argument("--results", default="out/results", metavar="DIR", help="where result files are (out/results)")


def _add_profile(command: Parser, help: str) -> None:
    command.add_argument("--profile", metavar="NAME[@VERSION]", help=f"{help} (offsets list profiles)")


def _add_show(commands: Commands) -> None:
    command = _add(
        commands,
        "show",
        "show one cell: what was asked, the citation, accepted and observed answers, Apache Kafka's, the bytes",
    )
    _add_run_argument(command, "run")
    command.add_argument("id", metavar="ID", help="a check, or a scenario for all its checks")
    command.add_argument("backend", metavar="BACKEND", help="the column, as in apache-kafka@4.3.1")
    _add_results(command)


def _add_get(commands: Commands) -> None:
    command = _add(
        commands,
        "get",
        "ask a broker for offsets and print topic:partition:offset lines",
        "times: latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), latest-tiered (-5),\n"
        "  earliest-pending-upload (-6), any other negative number to see what the broker makes of it, or\n"
        "  milliseconds since 1970 for the first record at or after that moment.\n"
        "A partition without such an offset has no line.",
    )
    command.add_argument("topic", nargs="+", metavar="TOPIC[:PARTITION]", help="what to ask about")
    command.add_argument("--time", default="latest", metavar="SPEC", help="which offset (latest)")
    command.add_argument(
        "--bootstrap", default="127.0.0.1:9092", metavar="HOST:PORT", help="the broker (127.0.0.1:9092)"
    )
    _add_client_config(command)


def _add_mutants(commands: Commands) -> None:
    command = _add(
        commands,
        "mutants",
        "prove that the suite can fail and is fair: break a backend on purpose and see which scenarios notice",
        "Each mutant is a bug that a proxy makes of the backend's own answers; each legal variation is a liberty that\n"
        "the protocol allows. Exit code 1 when a mutant survives, a scenario catches nothing, or a legal variation is\n"
        "called a deviation. With --mutant nothing is said of scenarios that catch nothing, with --scenario nothing\n"
        "of mutants that survive. The mutation score of each scenario goes to DIR/mutants.json.",
    )
    command.add_argument(
        "-b", "--backend", required=True, metavar="NAME[@VERSION]", help="a broker of backends.toml (in-house is quick)"
    )
    _add_scenario(command)
    command.add_argument(
        "--mutant",
        action="append",
        default=[],
        metavar="NAME",
        help="only this mutant or legal variation, or all that match; may be given several times",
    )
    command.add_argument("--out", default="out", metavar="DIR", help="where mutants.json goes (out)")


def _add_scenario(command: Parser) -> None:
    command.add_argument(
        "--scenario",
        action="append",
        default=[],
        metavar="ID",
        help="only this scenario, or all that match, as in 'latest.*'; may be given several times",
    )


def _add_backends(command: Parser, *, required: bool) -> None:
    group = command.add_argument_group("backends" + (", at least one" if required else ""))
    group.add_argument(
        "-b",
        "--backend",
        action="append",
        default=[],
        metavar="NAME[@VERSION][=IMAGE]",
        help="a broker of backends.toml; may be given several times (offsets list backends)",
    )
    group.add_argument(
        "--bootstrap",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="a broker that runs already; may be given several times",
    )
    _add_client_config(group)


def _add_client_config(command: argparse._ActionsContainer) -> None:
    command.add_argument(
        "--client-config",
        metavar="FILE",
        help="TLS and SASL: lines NAME=VALUE of librdkafka's properties (security.protocol, sasl.username, ...)",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return int(_perform(options))
    except CommandFailed as failure:
        print(f"offsets {options.command}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        print(f"offsets {options.command}: interrupted", file=sys.stderr)
        return Exit.ENVIRONMENT
    except BrokenPipeError:
        # Whoever read the output has gone, as `head` does: nothing is wrong, and nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.AS_EXPECTED


def _rules(profile: str | None) -> tuple[str, ...] | None:
    """The scenarios of a profile, or None where none was named."""
    if profile is None:
        return None
    from conformance import profiles

    try:
        return profiles.choose(profile).rules
    except profiles.UnknownProfile as error:
        raise CommandFailed(str(error), Exit.USAGE) from error


def _perform(options: argparse.Namespace) -> Exit:
    """Imported only when used: `offsets get` answers in a tenth of a second, and Spark alone takes longer to load."""
    match options.command:
        case "list":
            from offsets import listing

            return listing.perform(options.what, everything=options.all)
        case "smoke":
            from offsets import smoke

            return smoke.perform(options.backend, options.bootstrap, options.client_config)
        case "run":
            from offsets import run

            _rules(options.profile)  # a mistake in its name is told before a broker is started
            return run.perform(
                options.backend,
                options.bootstrap,
                options.scenario,
                options.profile,
                options.out,
                options.jobs,
                options.client_config,
            )
        case "nightly":
            from offsets import nightly

            _rules(options.profile)
            return nightly.perform(options)
        case "report":
            from offsets import report

            return report.perform(options.results, options.out, options.master, options.history, options.baselines)
        case "check":
            from offsets import check

            return check.perform(options.run, options.baseline, options.results, _rules(options.profile))
        case "baseline":
            from offsets import baseline

            if options.action == "lint":
                return baseline.lint(options.files)
            return baseline.write(options.run, options.backend, options.file, options.results)
        case "diff":
            from offsets import diff

            return diff.perform(options.run_a, options.run_b, options.results)
        case "show":
            from offsets import show

            return show.perform(options.run, options.id, options.backend, options.results)
        case "get":
            from offsets import get

            return get.perform(options.topic, options.time, options.bootstrap, options.client_config)
        case "mutants":
            from offsets import mutants

            return mutants.perform(options.backend, options.scenario, options.mutant, options.out)
    raise AssertionError(options.command)


if __name__ == "__main__":
    sys.exit(main())
