"""Contexts as decorators of functions and generators."""

import functools
import inspect
import warnings
from typing import Any


def decorate(context: Any, function: Any) -> Any:
    """The function, run inside a fresh clone of the context at each call.

    A generator has the context while its own code runs, not between its steps.
    """
    if isinstance(function, type):
        warnings.warn(
            f"{type(context).__name__}: decorating a class covers only making its objects; "
            "decorate __init__ instead",
            FutureWarning,
            stacklevel=2,
        )
        return _decorate_call(context, function)
    if inspect.isgeneratorfunction(function):
        return _decorate_generator(context, function)
    return _decorate_call(context, function)


def _decorate_call(context: Any, function: Any) -> Any:
    clone = context.clone

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with clone():
            return function(*args, **kwargs)

    return functools.update_wrapper(wrapper, function)


def _decorate_generator(context: Any, function: Any) -> Any:
    def inside(step: Any, *args: Any) -> Any:
        with context.clone():
            return step(*args)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step: Any = generator.send
        given: tuple[Any, ...] = (None,)
        while True:
            try:
                value = inside(step, *given)
            except StopIteration as end:
                return end.value
            try:
                step, given = generator.send, ((yield value),)
            except GeneratorExit:
                inside(generator.close)
                raise
            except BaseException as error:
                step, given = generator.throw, (error,)

    return functools.update_wrapper(wrapper, function)
