"""Selective checkpoints, which keep some results: create_selective_checkpoint_contexts().

The context of the forward pass keeps the results that a policy selects, in call order. The context
of the recomputation returns them in the same order; all other results are recomputed.
"""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from lamella import Tensor
from lamella.utils._python_dispatch import TorchDispatchMode
from lamella.utils._pytree import tree_map


class CheckpointPolicy(enum.Enum):
    """The fate of an operator's result. The first two values keep it, the others recompute it."""

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)
    MUST_CPU_OFFLOAD = 4


class SelectiveCheckpointContext:
    """The policy's first argument: tells whether the function is being recomputed."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


class _Keeping(TorchDispatchMode):
    """The forward context: records each call's result with its version, or that it is recomputed.

    kept: a queue of these records for each operator; the entry None has the operators with a kept
    result.
    """

    def __init__(self, policy: Callable[..., Any], kept: Any) -> None:
        self.policy, self.kept = policy, kept

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        context = SelectiveCheckpointContext(is_recompute=False)
        said = self.policy(context, func, *args, **kwargs)
        if said in (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE):

            def keep(value: Any) -> Any:
                return (value.detach(), value._version) if isinstance(value, Tensor) else value

            self.kept[func].append(tree_map(keep, made))
            self.kept[None].append(func)
        else:
            self.kept[func].append(_COMPUTE)
        return made


_COMPUTE = object()


class _Handing(TorchDispatchMode):
    def __init__(self, kept: Any, writes: bool) -> None:
        self.kept, self.writes = kept, writes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.kept[func] and func not in self.kept[None]:
            return func(*args, **(kwargs or {}))  # a call of the checkpoint itself
        if not self.kept[func]:
            raise RuntimeError(
                f"checkpoint: expected {func} as often as in the forward pass, got it once more; "
                "kept results are handed out once"
            )
        kept = self.kept[func].popleft()
        if kept is _COMPUTE:
            return func(*args, **(kwargs or {}))

        def hand(value: Any) -> Any:
            if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Tensor)):
                return value
            tensor, version = value
            if tensor._version != version and not self.writes:
                raise RuntimeError(
                    f"checkpoint: expected the kept result of {func} as it was, got one that was "
                    "written to; allow_cache_entry_mutation=True takes it as it is"
                )
            return tensor.detach()

        return tree_map(hand, kept, is_leaf=lambda part: isinstance(part, tuple))


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The two contexts for checkpoint()'s context_fn, which avoid recomputing some operators.

    policy_fn_or_list: the operators whose results are kept, or a function of (context, operator,
    *args, **kwargs) that returns a CheckpointPolicy, or True to keep the result.
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        operators = frozenset(policy)

        def policy(context: Any, func: Any, *args: Any, **kwargs: Any) -> bool:
            return func in operators

    elif not callable(policy):
        raise TypeError(
            "create_selective_checkpoint_contexts: expected 'policy_fn_or_list' to be a function "
            f"or a list, got {type(policy).__name__}"
        )
    kept: Any = defaultdict(deque)
    return _Keeping(policy, kept), _Handing(kept, allow_cache_entry_mutation)
