"""torch.backends: settings of libraries that Lamella does not use. Values are only stored."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType
from typing import Any

from lamella import _C


class _Backend(ModuleType):
    """A library's settings; is_available() is False by default."""

    def __init__(self, name: str, available: bool = False, **switches: Any) -> None:
        super().__init__(f"{__name__}.{name}", f"torch.backends.{name}")
        self._available = available
        self.__dict__.update(switches)
        # Makes it importable as a module.
        sys.modules[self.__name__] = self

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


cudnn = _Backend(
    "cudnn",
    enabled=True,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
    version=_version,
    conv=_Switches(fp32_precision="none"),
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
    matmul=_Switches(
        allow_tf32=False,
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
