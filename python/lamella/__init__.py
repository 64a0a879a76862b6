"""Lamella: tensors and operators. Names and signatures follow PyTorch wherever it has them."""

import sys as _sys

try:
    from lamella import _C
except ImportError as _error:
    from lamella._paths import explain_import_error as _explain

    raise _explain(_error) from None
from lamella._C import *  # noqa: F403
from lamella._C import (  # noqa: F401
    Generator,
    OutOfMemoryError,
    Size,
    Tensor,
    device,
    dtype,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    layout,
    memory_format,
    no_grad,
    set_grad_enabled,
    tensor,
)

__version__ = "0.1.0"

# The operators by name. Imports below replace some of them by Python functions of the same name.
_operators = _C._functions("")
globals().update(_operators)

# PyTorch's constants.
from math import e, inf, nan, pi  # noqa: E402, F401, I001

from lamella import _tensor  # noqa: E402
from lamella._functional import (  # noqa: E402, F401
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    cartesian_prod,
    cdist,
    chain_matmul,
    lu,
    norm,
    pca_lowrank,
    svd_lowrank,
    tensordot,
    unique,
    unique_consecutive,
    unravel_index,
)
from lamella._utils import (  # noqa: E402, F401
    broadcast_shapes,
    broadcast_tensors,
    einsum,
    explain,
    load_library,
    manual_seed,
    meshgrid,
    nonzero,
    numel,
    seed,
    trace,
    unload_library,
)

newaxis = None
detach_ = Tensor.detach_

default_generator = _C._default_generator()

# Attributes that __getattr__ imports on first use: "module" or "module:attribute".
_LAZY = {
    "amp": "lamella.amp",
    "array_api": "lamella.array_api",
    "autocast": "lamella.amp:autocast",
    "autograd": "lamella.autograd",
    "bridge": "lamella.bridge",
    "classes": "lamella._classes:classes",
    "distributed": "lamella.distributed",
    "fft": "lamella.fft",
    "hlo": "lamella.hlo",
    "library": "lamella.library",
    "linalg": "lamella.linalg",
    "nested": "lamella.nested",
    "nn": "lamella.nn",
    "optim": "lamella.optim",
    "profiler": "lamella.profiler",
    "func": "lamella.func",
    "ops": "lamella._ops:ops",
    "sparse": "lamella.sparse",
    "sparse_coo_tensor": "lamella._sparse_making:sparse_coo_tensor",
    **{
        name: f"lamella._sparse_making:{name}"
        for name in (
            "sparse_bsc_tensor",
            "sparse_bsr_tensor",
            "sparse_compressed_tensor",
            "sparse_csc_tensor",
            "sparse_csr_tensor",
        )
    },
    "special": "lamella.special",
    "cuda": "lamella.cuda",
    "testing": "lamella.testing",
    "PythonDispatcher": "lamella._python_dispatcher:PythonDispatcher",
    "utils": "lamella.utils",
    "vmap": "lamella.func.vmap:vmap",
    "finfo": "lamella._type_info:finfo",
    "iinfo": "lamella._type_info:iinfo",
    "set_printoptions": "lamella._tensor_str:set_printoptions",
    "get_printoptions": "lamella._tensor_str:get_printoptions",
    "Graph": "lamella._graph:Graph",
    "compile": "lamella._compile:compile",
    "TracerWarning": "lamella._trace:TracerWarning",
    "UntypedStorage": "lamella._storage:UntypedStorage",
    "initial_seed": "lamella._utils:initial_seed",
    "get_rng_state": "lamella._utils:get_rng_state",
    "set_rng_state": "lamella._utils:set_rng_state",
    "is_storage": "lamella._storage:is_storage",
    "typename": "lamella._utils:typename",
    "Stream": "lamella._device:Stream",
    "Event": "lamella._device:Event",
    "get_device_module": "lamella._device:get_device_module",
    "_register_device_module": "lamella._device:register_device_module",
    "load": "lamella._safetensors:load",
    "load_file": "lamella._safetensors:load_file",
    "_load_archive": "lamella.compat.serialization:load",
    "save": "lamella._safetensors:save",
    "save_file": "lamella._safetensors:save_file",
}


def _device_module(name: str) -> object:
    """The module of the device type `name`; None if no backend has it."""
    if name.startswith("_"):
        return None
    from lamella import _device

    return _device.find_module(name)


def __getattr__(name: str) -> object:
    place = _LAZY.get(name)
    if place is None:
        module = _device_module(name)
        if module is not None:
            return module
        from lamella._missing import missing

        raise missing(__name__, name)
    import importlib

    module, _, attribute = place.partition(":")
    found = importlib.import_module(module)
    if attribute:
        found = getattr(found, attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))


# Attribute lookup in a plain module searches its class first, which costs a fifth of the time of a
# call of a small operator. _Package looks in the module's dictionary first.
_sys.modules[__name__].__class__ = _C._Package
del _sys

_tensor.install()
del _tensor
