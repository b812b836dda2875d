"""The protocol table: one module per API, named by its key. To add an API, add its module; nothing else.

A module has `VERSIONS`, the range that it honours, and `async def handle(request, call)`. The key and the name are
in the module's name: `k02_list_offsets` answers key 2.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from broker.api import Api


@cache
def table() -> Mapping[int, Api]:
    """Every API by its key."""
    found = {}
    for module_info in pkgutil.iter_modules(__path__):
        number, _, name = module_info.name.partition("_")
        module = import_module(f"{__name__}.{module_info.name}")
        found[int(number[1:])] = Api(int(number[1:]), name, module.VERSIONS, module.handle)
    return dict(sorted(found.items()))
