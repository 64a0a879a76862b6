"""torch._C, as far as programs use it: lamella._C, and a few more of PyTorch's names."""

from __future__ import annotations

import enum
import importlib
import types
from typing import Any

import lamella
import lamella._dispatch
import lamella.compat.futures
from lamella.compat import _dispatcher
from lamella.compat._dispatcher import ExcludeDispatchKeyGuard as ExcludeDispatchKeyGuard
from lamella.compat._fallback import names_of
from lamella.compat._torch_function import DisableTorchFunction as DisableTorchFunction
from lamella.compat._torch_function import (
    DisableTorchFunctionSubclass as DisableTorchFunctionSubclass,
)
from lamella.compat._torch_function import (
    _disabled_torch_function_impl as _disabled_torch_function_impl,
)
from lamella.nn.modules._to import to_arguments
from lamella.utils._python_dispatch import TorchDispatchMode

# Classes of TorchScript: they have no instances.
_SCRIPT = frozenset(
    "Block CompilationUnit DeviceObjType Graph Node PyTorchFileReader PyTorchFileWriter TensorType "
    "Value".split()
)

# PyTorch's build flags for devices, all of which are absent here.
_DEVICES = frozenset({"_has_cuda", "_has_cudnn", "_has_mps", "_has_xpu", "has_cuda"})


def _extra(name: str) -> Any:
    if name == "Future":
        return lamella.compat.futures.Future
    if name == "_functorch":
        return importlib.import_module("lamella.compat._batches")
    if name.startswith("_") and name in vars(_dispatcher):
        globals()[name] = getattr(_dispatcher, name)
        return globals()[name]
    if name == "_autograd":
        return importlib.import_module("lamella.compat._autograd_parts")
    if name == "_functions":
        from lamella.compat import _autograd_parts as parts

        return types.SimpleNamespace(
            UndefinedGrad=parts._Undefined,
            DelayedError=parts.DelayedError,
            AccumulateGrad=parts.AccumulateGrad,
        )
    if name == "_WeakTensorRef":
        from lamella.compat._autograd_parts import _WeakTensorRef

        return _WeakTensorRef
    if name in ("has_lapack", "has_mkl", "has_openmp"):
        from lamella.compat import _settings

        return getattr(_settings, name)
    if name in _SCRIPT:
        return type(name, (), {"__module__": "torch._C"})
    if name in _DEVICES:
        return False
    if name.startswith(("_jit_set_", "_jit_override_")):
        return lambda *values: None
    return lamella.Tensor if name in ("TensorBase", "_TensorBase") else None


__getattr__, __dir__ = names_of("_C", _extra)


class _Keys(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """DispatchKey.AutocastCPU is the key's name, as Lamella's functions take it."""


class DispatchKeySet(lamella._dispatch.DispatchKeySet):
    """A set of one key, by name; `|` joins sets. Keys that Lamella does not have add nothing."""

    def __new__(cls, key: Any) -> Any:
        bits = lamella._C._dispatch_key_bits(key) if isinstance(key, str) else key
        return super().__new__(cls, bits)


def _log_api_usage_once(event: str) -> None:
    """Does nothing: API usage is not logged."""


def _get_tracing_state() -> None:
    """None: torch.jit traces nothing."""


def _is_tracing() -> bool:
    """False."""
    return False


_get_cudnn_enabled = _is_tracing
_infer_size = lamella.broadcast_shapes
# Of this thread: the number of modes of __torch_dispatch__ that are entered, and one of them from
# the outermost; whether the backward that runs reaches a node, and the node that runs.
_len_torch_dispatch_stack = lamella._C._mode_count
_get_dispatch_stack_at = lamella._C._mode_at
_will_engine_execute_node = lamella._C._will_run
_current_autograd_node = lamella._C._running_node


def _get_privateuse1_backend_name() -> str:
    """The device name of an out-of-tree backend."""
    from lamella.utils import backend_registration

    return getattr(backend_registration, "_name", None) or "privateuseone"


class _TensorMeta(type):
    """The metaclass of classes whose instances are the tensors with some property."""


class _Functions(type):
    """Functions that torch.nn takes from PyTorch's library: nn.functional and the operators."""

    def __getattr__(cls, name: str) -> Any:
        for owner in (lamella.nn.functional, lamella, lamella.ops.aten):
            if not name.startswith("__") and hasattr(owner, name):
                return getattr(owner, name)
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")


class _nn(metaclass=_Functions):
    """Functions that torch.nn takes from PyTorch's library."""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        """Parses the arguments of Module.to() into (device, dtype, non_blocking, memory_format)."""
        layout = kwargs.pop("memory_format", None)
        return (*to_arguments(*args, **kwargs), layout)


class Tag(str):
    """A tag of operators: `torch.Tag.pointwise in op.tags`. It equals its name."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<Tag.{self!s}>"


# The tags that operators may carry.
for _tag in (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated "
    "inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
    "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy"
).split():
    setattr(Tag, _tag, Tag(_tag))


def _jit_resolve_packet(name: str, *args: Any, **kwargs: Any) -> str:
    """The overload that a call of an operator takes."""

    class Named(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, *_: Any) -> Any:
            raise StopIteration(func._overloadname)

    ns, op = name.split("::")
    try:
        with Named():
            getattr(getattr(lamella.ops, ns), op)(*args, **kwargs)
    except StopIteration as found:
        return str(found.value)
    except TypeError as error:
        raise RuntimeError(f"failed to match any schema: {error}") from None
    raise RuntimeError(f"{name}: its call reached no operator")


def parse_schema(text: str) -> Any:
    """A schema in parts."""
    return lamella._schema.FunctionSchema(lamella._C._parse_schema(text))


class _TorchFunctionState(enum.Enum):
    """Which parts of __torch_function__ are off on this thread."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state() -> _TorchFunctionState:
    """Which parts of __torch_function__ are off on this thread."""
    on = lamella._C._torch_function_off(0) == 0
    return _TorchFunctionState.ENABLED if on else _TorchFunctionState.SUBCLASSES_DISABLED


def _function_modes() -> list[Any]:
    from lamella.compat import _modes

    return _modes._stack.modes


def _len_torch_function_stack() -> int:
    """The number of modes that are entered on this thread."""
    return len(_function_modes())


def _get_function_stack_at(index: int) -> Any:
    """A mode that is entered on this thread, from the outermost."""
    return _function_modes()[index]


def _current_graph_task_id() -> int:
    """The number of the backward that runs, -1 outside of one."""
    return lamella._C._backward_number() or -1


def _is_fwd_grad_enabled() -> bool:
    """Whether forward mode carries tangents on this thread."""
    before = lamella._C._set_fwd_grad_enabled(True)
    lamella._C._set_fwd_grad_enabled(before)
    return bool(before)


def _are_functorch_transforms_active() -> bool:
    """True while vmap, grad or another transform is running."""
    return len(lamella._C._vmap_levels()) > 0


def _is_torch_function_mode_enabled() -> bool:
    """True if a mode handles the calls of this thread."""
    return bool(_function_modes())


def _get_accelerator(check: bool | None = None) -> Any:
    """The CPU, because there is no other device."""
    return lamella.device("cpu")


def _parallel_info() -> str:
    """The text of torch.__config__.parallel_info()."""
    from lamella.compat.__config__ import parallel_info

    return parallel_info()


def _get_all_dtypes() -> list[Any]:
    """All dtypes."""
    kinds = {value for value in vars(lamella).values() if isinstance(value, lamella.dtype)}
    return sorted(kinds, key=str)


_vmap_fallback = {"warnings": False, "enabled": True}


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Stores whether loops in place of batching rules should warn; they never do."""
    _vmap_fallback["warnings"] = bool(enabled)


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """What _debug_only_display_vmap_fallback_warnings() stored."""
    return _vmap_fallback["warnings"]
