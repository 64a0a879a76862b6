"""Operators and kernels written in Python.

    lib = lamella.library.Library("mylib", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    lamella.ops.mylib.twice(lamella.ones(3))

Closing or destroying a Library undoes its registrations.
"""

from lamella import _missing
from lamella._custom_op import CustomOpDef, custom_op  # noqa: F401
from lamella._infer_schema import infer_schema
from lamella._library import (  # noqa: F401
    FakeImplCtx,
    Kernel,
    Library,
    define,
    fallthrough_kernel,
    from_hlo,
    get_ctx,
    get_kernel,
    impl,
    opcheck,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)

__all__ = [
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "from_hlo",
    "get_ctx",
    "get_kernel",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]

_missing.suggest(__name__)
