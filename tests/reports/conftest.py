"""One Spark session for all tests of this room: starting one costs more than all of them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from backends.java_runtime import find_java
from reports.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session(java_home=str(find_java().home))
    yield session
    session.stop()
