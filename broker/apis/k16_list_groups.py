"""ListGroups: v0-v5.

v4   only groups in some states (KIP-518)
v5   only groups of some types (KIP-848): all here are classic
"""

from __future__ import annotations

from typing import Any

from broker.api import OK, Call
from broker.codec import Fields

VERSIONS = range(6)

CLASSIC = "classic"


async def handle(request: Any, call: Call) -> Fields:
    states = {state.lower() for state in getattr(request, "states_filter", ())}
    types = {kind.lower() for kind in getattr(request, "types_filter", ())}
    return {
        "error_code": OK,
        "groups": [
            {
                "group_id": group.id,
                "protocol_type": group.protocol_type or "",
                "group_state": group.state.value,
                "group_type": CLASSIC,
            }
            for group in call.broker.groups.all()
            if (not states or group.state.value.lower() in states) and (not types or CLASSIC in types)
        ],
    }
