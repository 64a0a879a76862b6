"""Functional tensors made by hand: the operators that stand for writes and views, and the same
programs written in place again."""

import torch
from torch._dispatch.python import enable_crossref_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.reinplace import reinplace
from torch.utils._pytree import tree_leaves, tree_map_only


def functional(function, reapply_views):
    def called(*given):
        wrapped = tree_map_only(torch.Tensor, torch._to_functional_tensor, given)
        torch._enable_functionalization(reapply_views=reapply_views)
        try:
            made = function(*wrapped)
        finally:
            torch._disable_functionalization()
        for tensor, wrapper in zip(tree_leaves(given), tree_leaves(wrapped)):
            torch._sync(wrapper)
            now = torch._from_functional_tensor(wrapper)
            if now is not tensor and now.shape == tensor.shape:
                tensor.copy_(now)
        tree_map_only(torch.Tensor, torch._sync, made)
        return tree_map_only(torch.Tensor, torch._from_functional_tensor, made)

    return called


def column(x):
    x[:, 1].mul_(3)
    return x.sum(0)


def chained(x):
    y = x + 1
    y.view(2, 3, 2).transpose(0, 1)[1].zero_()
    return y


def two_views(x):
    a, b = (x * 2).chunk(2)
    a.add_(b)
    b.exp_()
    return a, b


def unbound(x):
    y = x.clone()
    for row in y.unbind(0):
        row.clamp_(max=2)
    return y


def dimensions(x):
    y = x.clone()
    y.unsqueeze(1).squeeze(1).t().diagonal().fill_(7)
    y.unsqueeze_(0)
    return y * y


def aliased(x):
    y = x.permute(1, 0)
    x.neg_()
    return y + x.reshape(3, 4)


def strided(x):
    x.as_strided((2,), (5,), 1).sub_(1)
    return x


def into_out(x):
    out = torch.empty(0)
    torch.mul(x, x, out=out)
    least = torch.full((), 9.0)
    torch.amin(out, (0, 1), out=least)
    return out, least


def of_another_dtype(x):
    y = x.clone()
    return y.gt_(2)


def constant(x):
    y = torch.tensor([1.0, 2.0, 4.0])
    y[0:1].add_(x.sum())
    return y


def resized(x):
    y = x + 1
    y.resize_(5, 4)
    y.view(20).fill_(2)
    z = x.clone()
    z.resize_(2, 4)
    z.view(-1).mul_(x[0, 1])
    return y, z


def into_steps(x):
    y = torch.empty_strided((4, 3), (7, 2)).copy_(x)
    print(y.stride())
    return torch.cat([y, x])


def values():
    return torch.arange(12.0).view(4, 3)


for program in (
    *(column, chained, two_views, unbound, dimensions, aliased, strided, into_out),
    *(of_another_dtype, constant, resized, into_steps),
):
    print(program.__name__)
    wanted, given, wrote = values(), values(), values()
    expected = tree_leaves(program(wanted))
    for reapply_views in (False, True):
        graph = make_fx(functional(program, reapply_views))(values())
        print(graph.code.strip())
        again = given.clone()
        found = tree_leaves(graph(again))
        print([torch.equal(a, b) for a, b in zip(expected + [wanted], found + [again])])
    graph = reinplace(graph, values())
    print(graph.code.strip())
    found = tree_leaves(graph(wrote))
    print([torch.equal(a, b) for a, b in zip(expected + [wanted], found + [wrote])])

with enable_crossref_functionalize():
    print(functional(chained, True)(values()))
    print(functional(two_views, False)(values()))
    try:
        functional(dimensions, False)(values())
    except (RuntimeError, AssertionError):
        print("other strides")

tensor = torch._to_functional_tensor(values())
part = tensor[0]
part.add_(1)
print(torch._is_functional_tensor(part), torch._is_functional_tensor(values()))
print(torch._from_functional_tensor(tensor)[0].tolist())
torch._sync(tensor)
print(torch._from_functional_tensor(tensor)[0].tolist())
torch._freeze_functional_tensor(tensor)
try:
    part.add_(1)
except RuntimeError:
    print("refused")
try:
    torch.ones(3).add_(part)
except RuntimeError:
    print("refused")
