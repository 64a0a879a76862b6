"""torch._jit_internal, as far as programs use it."""

from collections.abc import Callable
from typing import Any
from typing import Dict as Dict  # noqa: UP035
from typing import Final as Final
from typing import List as List  # noqa: UP035
from typing import Optional as Optional
from typing import Tuple as Tuple  # noqa: UP035

from lamella.compat.jit import _overload as _overload
from lamella.compat.jit import _overload_method as _overload_method
from lamella.compat.jit import export as export
from lamella.compat.jit import ignore as ignore
from lamella.compat.jit import is_scripting as is_scripting
from lamella.compat.jit import unused as unused


class _BroadcastingList:
    """In annotations: a list of numbers, or one number for all."""

    def __getitem__(self, kind: Any) -> Any:
        return list


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = _BroadcastingList()


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that calls one of two functions, chosen by a bool argument."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        value = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if value else if_false)(*args, **kwargs)

    chosen.__name__ = func_name
    return chosen


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn
