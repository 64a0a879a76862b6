"""Calls that classes of tensors handle: in lists of indices, for layouts, and under make_fx."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten


class Index(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return [kind.__name__ for kind in types], len(args)


data, index = torch.arange(6.0), torch.tensor([1, 2]).as_subclass(Index)
print(data[[index, index]], data[index, None], data[(index,)])


class Pair(torch.Tensor):
    """Two tensors as one."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def run(part):
            given = tree_map_only(Pair, lambda pair: getattr(pair, part), (args, kwargs or {}))
            return func(*given[0], **given[1])

        return Pair(run("a"), run("b"))


def paired(a, b, c):
    pair = (Pair(a, b) * c).neg()
    return pair.a, pair.b, c + 1


print(make_fx(paired)(torch.ones(2), torch.zeros(2), torch.ones(2)).code.strip())


class Asked(torch.Tensor):
    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_subclass(
            cls, data, False, dispatch_sizes_strides_policy="strides"
        )

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(func, args[1:], kwargs or {})


asked = Asked(torch.ones(2, 3))
print(asked.is_contiguous(), asked.is_contiguous(memory_format=torch.channels_last))
print(aten.is_strides_like_format.default(asked, torch.channels_last))
print(aten.is_non_overlapping_and_dense.default(asked))


class Keyed(Pair):
    @staticmethod
    def __new__(cls, a, b):
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.NestedTensor)
        form = torch.contiguous_format
        options = (a.dtype, a.layout, a.device, False, False, None, False, False, keys)
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, a.stride(), 0, form, *options)


has = torch._C._dispatch_keys(Keyed(data, data)).has
print(has(torch._C.DispatchKey.NestedTensor), has(torch._C.DispatchKey.AutogradNestedTensor))
