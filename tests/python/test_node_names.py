"""The names of nodes beside PyTorch's: what `grad_fn` prints, for the overloads of an operator."""

import pytest

import lamella

torch = pytest.importorskip("torch")

EXPRESSIONS = """
a + b, a + 1, 1 + a, a - b, a - 1, 1 - a, torch.rsub(a, 2), a * b, a * 2, 2 * a, a / b, a / 2
torch.div(a, b, rounding_mode="floor"), torch.div(a, 2, rounding_mode="trunc")
a ** 2, a ** b, 2 ** a, a.square(), a.remainder(2), a.remainder(b), a.fmod(2), a.fmod(b)
a.sum(), a.sum(0), a.sum((0, 1)), a.sum(0, keepdim=True), a.sum(dtype=torch.float64)
a.mean(), a.mean(1), a.mean((0, 1)), a.max(), a.max(1)[0], a.min(), a.min(1)[0]
a.amax(1), a.amin(0)
torch.max(a, b), a.maximum(b), a.sort()[0], torch.sort(a, stable=True)[0], a.topk(1)[0]
a.clamp(0, 1), a.clamp(min=0), a.clamp(min=b), a.clamp(max=b), a.clamp_min(0)
a.xlogy(b), a.xlogy(2), torch.xlogy(2, a), torch.lerp(a, b, 0.3), torch.lerp(a, b, b)
a.norm(), a.std(), a.var(1), a.logsumexp(1), a.softmax(1), a.log_softmax(1)
a.squeeze(), a.squeeze(0), a.transpose(0, 1), a.t(), a.mT, a[0], a[:1], a[None], a.view(-1)
torch.where(a > 1, a, b), a.masked_fill(a > 1, 0), a.index_fill(0, i, 1.0)
a.scatter(0, i[None], b), a.scatter(0, i[None], 1.0), a.scatter_add(0, i[None], b)
"""


def named(library, expression):
    space = {
        "torch": library,
        "a": library.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
        "b": library.tensor([[0.5, -1.0], [2.0, 0.3]], requires_grad=True),
        "i": library.tensor([0, 1]),
    }
    return [value.grad_fn.name() for value in eval(f"[{expression}]", space)]


@pytest.mark.parametrize("expressions", EXPRESSIONS.strip().split("\n"))
def test_names(expressions):
    assert named(lamella, expressions) == named(torch, expressions)


@pytest.mark.parametrize(
    "write", ["a += 1", "a -= 1", "a *= 2", "a /= 2", "a **= 2", "a.clamp_(0, 1)"]
)
def test_names_of_writes(write):
    names = []
    for library in (lamella, torch):
        space = {"a": library.tensor([1.0, 2.0], requires_grad=True) * 3}
        exec(write, space)
        names.append(space["a"].grad_fn.name())
    assert names[0] == names[1]


def test_a_name_stays_when_the_node_has_run():
    a = lamella.ones(2, requires_grad=True)
    whole, one = a.sum(), a.sum(0)
    whole.backward()
    one.backward()
    assert [whole.grad_fn.name(), one.grad_fn.name()] == ["SumBackward0", "SumBackward1"]
    assert repr(whole) == "tensor(2., grad_fn=<SumBackward0>)"
