"""Whether a plug-in has replaced code of gnnbench, or of what its clocks and checks call.

Stages run in the process that checks them. Before a plug-in is imported, a process records the
functions, classes and constants of all modules of gnnbench that it has imported; after every
command it compares them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import FunctionType, MappingProxyType, ModuleType

from gnnbench.core.errors import ReplacedError

PACKAGE = "gnnbench"
# Modules and classes of others that clocks and random choices rest on.
OTHERS = ("time", "secrets", "torch.cuda", "torch.cuda.Event")
Body = tuple[object, object, object]


def record(*objects: object) -> Callable[[], None]:
    """Record what is imported so far; returns a function that raises ``ReplacedError`` if a
    recorded function, class or constant is another now, or one that ``objects`` hold.

    The function calls nothing that a module names, so it cannot be misled by what it looks for.
    """
    instances = [(type(one).__qualname__, vars(one)) for one in objects]
    items = [
        (where, space, name, value, function, _body(function))
        for where, space in [*_namespaces(), *instances]
        for name, value in space.items()
        if _is_fixed(name, value)
        for function in [_function(value)]
    ]
    error, missing = ReplacedError, object()

    def check() -> None:
        for where, space, name, value, function, body in items:
            same = space.get(name, missing) is value
            if same and function is not None:
                code, defaults, keywords = body
                same = (
                    function.__code__ is code
                    and function.__defaults__ is defaults
                    and function.__kwdefaults__ is keywords
                )
            if not same:
                raise error(
                    f"'{name}' of {where} was replaced in the process that is measured; a plug-in"
                    " must not change gnnbench"
                )

    return check


def _namespaces() -> Iterator[tuple[str, Mapping[str, object]]]:
    """The modules of gnnbench and ``OTHERS``, their classes, and ``sys.modules`` itself."""
    modules = {
        name: module
        for name, module in [*sys.modules.items()]
        if name.partition(".")[0] == PACKAGE and isinstance(module, ModuleType)
    }
    yield "sys.modules", sys.modules
    for name in OTHERS:
        owner, _, last = name.rpartition(".")
        found = sys.modules.get(name) or getattr(sys.modules.get(owner), last, None)
        if found is not None:
            yield name, vars(found)
    for name, module in modules.items():
        yield name, vars(module)
        for one in [*vars(module).values()]:
            if isinstance(one, type) and one.__module__ == name:
                yield f"{name}.{one.__qualname__}", vars(one)


def _is_fixed(name: str, value: object) -> bool:
    """Whether a value must not be replaced: code, modules of gnnbench, constants.

    ``typing`` adds constructors to classes that implement a protocol when they are first used.
    """
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == PACKAGE or value.__name__ in OTHERS
    if getattr(type(value), "__module__", "") == "typing" or name.startswith("_abc"):
        return False
    if getattr(value, "__module__", "") == "typing":
        return False
    is_code = callable(value) or hasattr(type(value), "__get__")
    return is_code or isinstance(value, MappingProxyType) or name.isupper()


def _function(value: object) -> FunctionType | None:
    """The Python function behind a function, method or property."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    elif isinstance(value, cached_property):
        value = value.func
    return value if isinstance(value, FunctionType) else None


def _body(function: FunctionType | None) -> Body:
    if function is None:
        return None, None, None
    return function.__code__, function.__defaults__, function.__kwdefaults__
