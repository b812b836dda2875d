"""Files beside Spark's own: small texts in a directory that may be this disk or any store that Spark can reach.

For: listing, reading and writing whole texts by path or URI. Left to others: what is in them.
"""

import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession


class Storage:
    """One directory, by path or URI (file:, hdfs:, s3a:). It need not exist: the first write makes it."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        parts = urlsplit(uri)
        # Python writes to this disk: Hadoop cannot replace a file there in one step.
        local = parts.scheme in ("", "file")
        self._directory = Path(unquote(parts.path) if parts.scheme else uri).absolute() if local else None
        self.uri = self._directory.as_uri() if self._directory else uri.rstrip("/")
        self._spark = spark

    def path(self, *parts: str) -> str:
        """The URI of something below, for Spark."""
        return "/".join((self.uri, *parts))

    def names(self, directory: str) -> list[str]:
        """What a directory holds, sorted, without what is half written; nothing where there is none."""
        if self._directory:
            place = self._directory / directory
            found = [entry.name for entry in place.iterdir()] if place.is_dir() else []
        else:
            files, where = self._hadoop(directory)
            found = [entry.getPath().getName() for entry in files.listStatus(where)] if files.exists(where) else []
        return sorted(name for name in found if not name.startswith("."))

    def read(self, *parts: str) -> str:
        if self._directory:
            return self._directory.joinpath(*parts).read_text(encoding="utf-8")
        files, where = self._hadoop(*parts)
        stream = files.open(where)
        try:
            return bytes(stream.readAllBytes()).decode("utf-8")
        finally:
            stream.close()

    def write(self, text: str, *parts: str) -> None:
        """Whole or not at all: a reader never meets half a text."""
        content = text.encode("utf-8", errors="replace")
        if self._directory:
            target = self._directory.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            half = target.with_name(f".{target.name}.{os.getpid()}.half")
            half.write_bytes(content)
            half.replace(target)
            return
        # An object store shows a file once it is closed.
        files, where = self._hadoop(*parts)
        stream = files.create(where, True)
        stream.write(bytearray(content))
        stream.close()

    def remove(self, *parts: str) -> None:
        """A text or a whole directory; what is not there is gone already."""
        if self._directory:
            target = self._directory.joinpath(*parts)
            if target.is_dir():
                shutil.rmtree(target, ignore_errors=True)
            else:
                target.unlink(missing_ok=True)
            return
        files, where = self._hadoop(*parts)
        files.delete(where, True)

    def _hadoop(self, *parts: str) -> tuple[Any, Any]:
        jvm: Any = self._spark._jvm
        where = jvm.org.apache.hadoop.fs.Path(self.path(*parts))
        return where.getFileSystem(self._spark._jsc.hadoopConfiguration()), where
