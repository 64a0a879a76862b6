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
from lamella.utils._pytree import tree_map_only


class CheckpointPolicy(enum.Enum):
    """The fate of an operator's result. The first two values keep it, the others recompute it."""

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)
    MUST_CPU_OFFLOAD = 4


class SelectiveCheckpointContext:
    """The policy's first argument: tells whether the function is being recomputed."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


class _Kept:
    """A tensor of a result that is kept, and its version."""

    def __init__(self, value: Tensor) -> None:
        self.val, self.version = value.detach(), value._version


class _CachingTorchDispatchMode(TorchDispatchMode):
    """The forward context: records each call's result with its version, or that it is recomputed.

    storage: a queue of these records for each operator; the entry None has the operators with a
    kept result.
    """

    def __init__(self, policy: Callable[..., Any], storage: Any) -> None:
        self.policy, self.storage = policy, storage

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        context = SelectiveCheckpointContext(is_recompute=False)
        said = self.policy(context, func, *args, **kwargs)
        if said in (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE):
            self.storage[func].append(tree_map_only(Tensor, _Kept, made))
            self.storage[None].append(func)
        else:
            self.storage[func].append(_COMPUTE)
        return made


_COMPUTE = object()


class _CachedTorchDispatchMode(TorchDispatchMode):
    def __init__(self, storage: Any, writes: bool) -> None:
        self.storage, self.writes = storage, writes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.storage[func] and func not in self.storage[None]:
            return func(*args, **(kwargs or {}))  # a call of the checkpoint itself
        if not self.storage[func]:
            raise RuntimeError(
                f"checkpoint: expected {func} as often as in the forward pass, got it once more; "
                "kept results are handed out once"
            )
        kept = self.storage[func].popleft()
        if kept is _COMPUTE:
            return func(*args, **(kwargs or {}))

        def hand(value: _Kept) -> Tensor:
            if value.val._version != value.version and not self.writes:
                raise RuntimeError(
                    f"checkpoint: expected the kept result of {func} as it was, got one that was "
                    "written to; allow_cache_entry_mutation=True takes it as it is"
                )
            return value.val.detach()

        return tree_map_only(_Kept, hand, kept)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The two contexts for checkpoint()'s context_fn, which avoid recomputing some operators.

    policy_fn_or_list: the operators whose results are kept, or a function of (context, operator,
    *args, **kwargs) that returns a CheckpointPolicy, or True to keep the result.
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        for op in policy:
            if not hasattr(op, "_overloadname"):
                raise ValueError(
                    "create_selective_checkpoint_contexts: expected overloads of operators, such "
                    f"as torch.ops.aten.sin.default, got {op!r}"
                )
        operators = frozenset(policy)

        def policy(context: Any, func: Any, *args: Any, **kwargs: Any) -> bool:
            return func in operators

    elif not callable(policy):
        raise TypeError(
            "create_selective_checkpoint_contexts: expected 'policy_fn_or_list' to be a function "
            f"or a list, got {type(policy).__name__}"
        )
    kept: Any = defaultdict(deque)
    modes = (
        _CachingTorchDispatchMode(policy, kept),
        _CachedTorchDispatchMode(kept, allow_cache_entry_mutation),
    )
    return modes
