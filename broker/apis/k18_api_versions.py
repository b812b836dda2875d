"""ApiVersions: v0-v4. What this broker honours, and nothing else.

A version that is too high is answered in v0, so that the client learns which to use (KIP-511); that is done where
frames are read, because the request cannot be.
"""

from __future__ import annotations

import re
from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.apis import table
from broker.codec import Fields

VERSIONS = range(5)

KEY = 18

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def handle(request: Any, call: Call) -> Fields:
    if call.version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in names):
            return {"error_code": ErrorCode.invalid_request}
    return {"error_code": OK, "api_keys": ranges(table().values())}


def unsupported() -> Fields:
    """The answer to a version that nobody here knows."""
    own = [api for api in table().values() if api.key == KEY]
    return {"error_code": ErrorCode.unsupported_version, "api_keys": ranges(own)}


def ranges(apis: Any) -> list[Fields]:
    return [{"api_key": api.key, "min_version": api.versions[0], "max_version": api.versions[-1]} for api in apis]
