"""The command line: start the in-house broker and run it until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import signal
import ssl
import sys
import time
from pathlib import Path

from broker.broker import Broker
from broker.refusal import Refusal
from broker.server import Server
from broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS, BrokerSettings

OK, USAGE, CANNOT_LISTEN = 0, 2, 3

EPILOG = """\
settings for --config (Kafka's names; topics may override the second group one by one):
  {broker}

  {topic}

One line on standard output says where the broker listens. Logs are lines of JSON on standard error.
Everything is kept in memory and gone when the process ends. SIGTERM and SIGINT stop it in order.
"""


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        _log_as_json(options.log_level, options.log_file)
        settings = BrokerSettings.of(dict(_setting(text) for text in options.config))
        users = _users(options.sasl_users) if options.sasl_users else None
        tls = _tls(options.tls_cert, options.tls_key) if options.tls_cert else None
        listen, advertise = _address(options.listen), _address(options.advertise) if options.advertise else None
        metrics = _address(options.metrics) if options.metrics else None
    except (ValueError, OSError, Refusal) as error:
        print(f"python -m broker: {error}", file=sys.stderr)
        return USAGE
    broker = Broker(settings, users)
    return asyncio.run(_run(Server(broker, tls=tls), listen, advertise, metrics))


async def _run(
    server: Server, listen: tuple[str, int], advertise: tuple[str, int] | None, metrics: tuple[str, int] | None
) -> int:
    log = logging.getLogger("broker")
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        host, port = await server.start(*listen)
        server.broker.host, server.broker.port = advertise or (host, port)
        if advertise and not advertise[1]:
            server.broker.port = port
        line = f"listening on {_shown(host, port)}"
        if metrics:
            line += f", metrics on http://{_shown(*await server.start_metrics(*metrics))}/metrics"
    except OSError as error:
        print(f"python -m broker: cannot listen: {error}. Choose another --listen or --metrics", file=sys.stderr)
        return CANNOT_LISTEN
    # What is loaded by now lives as long as the process; the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    print(line, flush=True)
    log.info("started", extra={"address": _shown(host, port), "engine": "memory"})
    await stop.wait()
    await server.stop()
    log.info("stopped")
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m broker",
        description="A Kafka-compatible broker of one node that keeps its records in memory.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG.format(
            broker="\n  ".join(f"{each.name}={each.default}" for each in BROKER_SETTINGS.values()),
            topic="\n  ".join(
                f"{each.synonym}={each.default}" for each in TOPIC_SETTINGS.values() if each.synonym and each.effective
            ),
        ),
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:9092", metavar="HOST:PORT",
        help="where to listen (127.0.0.1:9092); port 0 means any that is free",
    )  # fmt: skip
    parser.add_argument(
        "--advertise", metavar="HOST:PORT", help="where clients are told to connect, if that is not where it listens"
    )
    parser.add_argument(
        "--config", action="append", default=[], metavar="NAME=VALUE", help="a setting; may be given several times"
    )
    parser.add_argument("--metrics", metavar="HOST:PORT", help="serve Prometheus metrics at http://HOST:PORT/metrics")
    parser.add_argument("--tls-cert", metavar="FILE", help="speak TLS with this certificate chain (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="its key (PEM), if it is not in the same file")
    parser.add_argument(
        "--sasl-users", metavar="FILE", help="require SASL/PLAIN; the file has a line NAME:PASSWORD for each user"
    )
    parser.add_argument(
        "--log-level", default="info", choices=("debug", "info", "warning", "error"), help="what to log (info)"
    )
    parser.add_argument("--log-file", metavar="FILE", help="log to this file instead of standard error")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--config {text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


def _users(path: str) -> dict[str, str]:
    lines = [line for line in Path(path).read_text().splitlines() if line.strip()]
    users = dict(line.split(":", 1) for line in lines if ":" in line)
    if not users or len(users) != len(lines):
        raise ValueError(f"{path}: each line must be NAME:PASSWORD, with a name of its own")
    return users


def _tls(certificate: str, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


class _JsonLines(logging.Formatter):
    """One JSON object a line: time, level, where, what, and whatever else was given."""

    _ordinary = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        } | {key: value for key, value in vars(record).items() if key not in self._ordinary}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _log_as_json(level: str, path: str | None) -> None:
    handler = logging.FileHandler(path) if path else logging.StreamHandler()
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler])
