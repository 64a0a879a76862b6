"""Lets context managers decorate functions and generators."""

import functools
import inspect
import warnings
from typing import Any


def decorate(context: Any, function: Any) -> Any:
    """The function, where each call runs inside a new clone of the context.

    The context is active while a generator's own code runs, not while it is suspended.
    """
    if isinstance(function, type):
        warnings.warn(
            f"{type(context).__name__}: decorating a class affects only its constructor; "
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
