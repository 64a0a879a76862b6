"""The overloads and arguments that __torch_dispatch__ handlers receive."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

aten = torch.ops.aten


class Names(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kinds = [type(arg).__name__ for arg in args]
        print(func, kinds, sorted(kwargs or {}))
        return func(*args, **(kwargs or {}))


x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
with Names():
    results = [x + 1, 1 + x, x - 2, 2 - x, x * 3, 3 * x, x / 4, x // 2, x % 2, x**2, x == 1, x < 2]
    results += [torch.add(x, 1, alpha=2), torch.div(x, 2, rounding_mode="floor"), -x, x.relu()]
    results += [x.clone().add_(1), x.clone().mul_(2), x.clone().sub_(1), x.clone().div_(2)]
    results += [x.sum(), x.sum(0), x.sum(1, keepdim=True), x.sum(dtype=torch.float64), x.mean()]
    results += [x.mean(1), x.max(), x.min(), x.amax(1), x.all(), x.any(), x.argmax(), x.t() @ x]
for result in results:
    print(result)


class Scaled(torch.Tensor):
    """Numbers with a scale beside them, which knows a few operators by their overloads."""

    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)

    def __init__(self, data, scale):
        self.data_, self.scale = data, scale

    def __repr__(self):
        return f"Scaled({self.data_.tolist()}, {self.scale})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (aten.mul.Tensor, aten.div.Tensor) and not isinstance(args[1], torch.Tensor):
            scale = args[0].scale
            scale = scale * args[1] if func is aten.mul.Tensor else scale / args[1]
            return Scaled(args[0].data_, scale)
        if func is aten.sum.default:
            return args[0].data_.sum() * args[0].scale
        print("as a plain tensor:", func)
        plain = tree_map(lambda a: a.data_ * a.scale if isinstance(a, Scaled) else a, args)
        return func(*plain, **(kwargs or {}))


s = Scaled(x, 2.0)
print(s * 3, s / 4, 3 * s, s.sum(), s + 1, 1 - s, s.max())
