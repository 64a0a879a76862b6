"""torch.backends: settings of libraries. Those that let CUDA round float32 to TF32 are followed, in
products (cuda.matmul) and convolutions (cudnn); the others are only stored."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType
from typing import Any

import lamella
from lamella import _C
from lamella.compat._settings import allow_tf32, get_float32_matmul_precision


def _set(switches: Any, name: str, value: Any) -> None:
    """Stores a setting, and follows one of TF32; `_tf32_of` is its place in liblamella_cuda.so."""
    if "_tf32_of" in switches.__dict__ and name in ("allow_tf32", "fp32_precision"):
        allowed = bool(value) if name == "allow_tf32" else value == "tf32"
        allow_tf32(switches._tf32_of, allowed)
        switches.__dict__["allow_tf32"] = allowed
    switches.__dict__[name] = value


class _Backend(ModuleType):
    """A library's settings; is_available() is False by default."""

    def __init__(self, name: str, available: bool = False, **switches: Any) -> None:
        super().__init__(f"{__name__}.{name}", f"torch.backends.{name}")
        self._available = available
        self.__dict__.update(switches)
        # Makes it importable as a module.
        sys.modules[self.__name__] = self

    __setattr__ = _set

    def is_available(self) -> bool:
        """Whether the library is used."""
        return self._available

    is_built = is_available

    def flags(self, *args: Any, **kwargs: Any) -> Any:
        """A context that changes nothing."""
        return contextlib.nullcontext()


def _version() -> None:
    """None: there is no such library."""


class _Switches:
    """A group of settings, such as torch.backends.cuda.matmul."""

    def __init__(self, **switches: Any) -> None:
        self.__dict__.update(switches)

    __setattr__ = _set


class _Cudnn(_Backend):
    def is_available(self) -> bool:
        """Whether cuDNN was found."""
        return not lamella.cuda.libraries().get("cudnn", "there is no").startswith("there is no")


class _Products(_Switches):
    """torch.backends.cuda.matmul, whose TF32 follows set_float32_matmul_precision() too."""

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 may be rounded to TF32."""
        return get_float32_matmul_precision() != "highest"


cudnn = _Cudnn(
    "cudnn",
    _tf32_of=1,
    enabled=True,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
    version=_version,
    conv=_Switches(_tf32_of=1, fp32_precision="none"),
    rnn=_Switches(fp32_precision="none"),
)

_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def _switch(name: str) -> tuple[Any, Any]:
    def enable(enabled: bool) -> None:
        _sdp[name] = bool(enabled)

    return enable, lambda: _sdp[name]


_functions: dict[str, Any] = {}
for _kind in _sdp:
    _enable, _enabled = _switch(_kind)
    _functions[f"enable_{_kind}_sdp"] = _enable
    _functions[f"{_kind}_sdp_enabled"] = _enabled

cuda = _Backend(
    "cuda",
    matmul=_Products(
        _tf32_of=0,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
        fp32_precision="none",
    ),
    cufft_plan_cache=_Switches(size=0, max_size=0, clear=_version),
    can_use_flash_attention=lambda params, debug=False: False,
    can_use_efficient_attention=lambda params, debug=False: False,
    SDPAParams=lambda *values: values,
    sdp_kernel=lambda *args, **kwargs: contextlib.nullcontext(),
    preferred_linalg_library=lambda backend=None: None,
    **_functions,
)
mps = _Backend("mps")
mkl = _Backend("mkl")
mkldnn = _Backend("mkldnn", enabled=True, matmul=_Switches(), conv=_Switches())
openmp = _Backend("openmp")
xeon = _Backend("xeon")


cpu = _Backend("cpu", available=True, get_cpu_capability=_C._cpu_capability)
opt_einsum = _Backend("opt_einsum", enabled=False, strategy=None)
nnpack = _Backend("nnpack")
quantized = _Backend("quantized", engine="none", supported_engines=[])


def disable_global_flags() -> None:
    """Does nothing: settings stay changeable."""


def flags_frozen() -> bool:
    """False."""
    return False
