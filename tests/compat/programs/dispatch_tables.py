"""PyTorch's questions about the table of operators: registrations, computed tables, tags, key sets
of the thread, and the errors of registrations that do not fit."""

import torch
from torch import _C
from torch._python_dispatcher import PythonDispatcher

KEYS = ("Undefined", "CPU", "CUDA", "XLA", "AutogradCPU", "AutogradXLA", "AutogradOther")


def rows(name):
    found = [row for row in _C._dispatch_dump_table(name).splitlines() if row.split(":")[0] in KEYS]
    return [row for row in found if "fallback" not in row]


def refused(function, *args):
    try:
        function(*args)
    except RuntimeError as error:
        return str(error).split("\nException raised from")[0].replace("(not from a file)", "")
    return "taken"


library = _C._dispatch_library("FRAGMENT", "tables", "")
print(repr(_C._dispatch_dump("tables::one")))
library.def_("one(Tensor x) -> Tensor")
library.impl_t_t("one", "CPU", debug="on_cpu")
library.impl_t_t("one", "CompositeImplicitAutograd", debug="composed")
library.impl_t_t("one", "Autograd", debug="with_gradients")
print(_C._dispatch_dump("tables::one"))
print(rows("tables::one"))
library.def_("two(Tensor x) -> Tensor", alias="PURE_FUNCTION")
library.impl_t_t("two", "CompositeExplicitAutograd")
print(_C._dispatch_dump("tables::two"), rows("tables::two"))
print(refused(library.def_, "one(Tensor x) -> Tensor"))
late = _C._dispatch_library("FRAGMENT", "tables", "")
late.impl_t_t("three", "CPU", debug="early")
print([text for text in _C._dispatch_find_dangling_impls() if "tables" in text])
print(refused(late.def_, "three(Tensor x, Tensor y) -> Tensor"))
del late
print(_C._dispatch_find_dangling_impls(), repr(_C._dispatch_dump("tables::three")))
print(_C._dispatch_has_kernel_for_dispatch_key("tables::one", "CPU"))
print(_C._dispatch_has_kernel_for_dispatch_key("tables::one", "CUDA"))
print(_C._dispatch_has_computed_kernel_for_dispatch_key("tables::one", "CUDA"))
print(refused(_C._dispatch_print_registrations_for_dispatch_key, "nothing"))
print(refused(_C._dispatch_has_kernel_for_dispatch_key, "tables::none", "CPU"))
del library
print(repr(_C._dispatch_dump("tables::one")))

# Key sets of the thread.
print(_C._dispatch_tls_is_dispatch_key_excluded("AutogradFunctionality"))
with _C._AutoDispatchBelowAutograd():
    print(_C._dispatch_tls_is_dispatch_key_excluded("AutogradFunctionality"))
    print((torch.ones(2, requires_grad=True) * 2).requires_grad)
print((torch.ones(2, requires_grad=True) * 2).requires_grad)
print(_C._dispatch_isTensorSubclassLike(torch.ones(2)), _C._is_fwd_grad_enabled())

# Operators written in Python.
with torch.library._scoped_library("tabled", "FRAGMENT") as lib:
    lib.define("half(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
    lib.impl("half", lambda x: x / 2, "CompositeImplicitAutograd")
    op = torch.ops.tabled.half.default
    print(torch.Tag.pointwise in op.tags, torch.Tag.core in op.tags, op._defined_in_python)
    print(op.decompose(torch.ones(2)))
    print(torch.ops.aten.mm.default._defined_in_python)
print(torch._C.parse_schema("f(Tensor x, int n=3) -> Tensor").arguments[1].default_value)

for keys in (["CPU", "XLA", "Autograd"], ["CPU", "FPGA", "AutogradCPU"]):
    dispatcher = PythonDispatcher()
    dispatcher.register(keys)
    print(dispatcher.dispatchTable(), dispatcher.registrations())
    del dispatcher


class Sum(torch._ops.HigherOrderOperator):
    def __init__(self):
        super().__init__("sum_of_calls")

    def __call__(self, function, x):
        return super().__call__(function, x)


total = Sum()
for key in ("AutogradCPU", "ADInplaceOrView", "BackendSelect"):
    total.fallthrough(getattr(torch._C.DispatchKey, key))


@total.py_impl(torch._C.DispatchKey.CPU)
def total_on_cpu(function, x):
    return function(x).sum()


print(total(torch.exp, torch.zeros(3)), total.name())
