"""Lazy conjugates and negatives against PyTorch."""

import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from op_db import PRESENT, Absent  # noqa: E402
from op_db_mirror import mapped, ours, to_lamella  # noqa: E402
from op_db_sample import SampleRun, same  # noqa: E402

import lamella  # noqa: E402

DTYPES = (torch.complex128, torch.float64)


def lazy(value, dtype):
    """The same numbers as lazy conjugates or negatives of stored values."""

    def change(tensor):
        tensor = tensor.detach()
        if tensor.is_complex():
            return tensor.resolve_conj().conj_physical().conj()
        if tensor.is_floating_point() and dtype == torch.float64:
            return torch._neg_view(tensor.neg())
        return tensor

    return mapped(value, change)


def mine(value):
    """A value for Lamella, as lazy as it is."""
    if isinstance(value, torch.Tensor) and value.is_conj():
        return mine(value.conj()).conj()
    if isinstance(value, torch.Tensor) and value.is_neg():
        return lamella._neg_view(mine(torch._neg_view(value)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(mine, value))
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(map(mine, value))
    if isinstance(value, dict):
        return {to_lamella(key): mine(item) for key, item in value.items()}
    return to_lamella(value)


def calls(entry):
    yield "forward", entry.info.get_op(), entry.function()
    theirs = entry.info.get_inplace()
    if theirs is not None:
        try:
            yield "inplace", theirs, ours(theirs)
        except Absent:
            return


# What memory holds before it is written cannot be compared.
CASES = [
    pytest.param(entry, dtype, id=f"{entry.name}-{str(dtype)[6:]}")
    for entry in PRESENT
    for dtype in DTYPES
    if dtype in entry.info.dtypes and entry.has_values
]


@pytest.mark.parametrize("entry, dtype", CASES)
def test_entry(entry, dtype):
    found = [
        call
        for call in calls(entry)
        if not entry.known(call[0]) and not entry.known(f"conj.{call[0]}")
    ]
    ran = False
    for sample in entry.samples(dtype)[-1:]:
        parts = [sample.input, list(sample.args), dict(sample.kwargs)]
        for name, theirs, function in found:
            first, args, kwargs = lazy(parts, dtype)
            try:
                my_first, my_args, my_kwargs = mine(lazy(parts, dtype))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = theirs(first, *args, **kwargs)
                    random = SampleRun(entry, function, sample, dtype).is_random()
            except Exception:  # PyTorch has no answer
                continue
            try:
                got = function(my_first, *my_args, **my_kwargs)
            except Absent:
                continue
            ran = True
            if random:
                continue
            process = sample.output_process_fn_grad
            try:
                same(got, expected, name)
            except AssertionError:
                # Signs and phases may be free; the entry says what is left then.
                same(ours(process)(got), process(expected), name)
            if name == "inplace":
                same(my_first, first, "argument")
                assert my_first.is_conj() == first.is_conj()
    entry.require_compared(f"conj.{str(dtype)[6:]}", ran)


# ---- The flags -----------------------------------------------------------------------------------


def numbers():
    return lamella.tensor([[1 + 2j, 3 - 4j], [-5j, 6]], dtype=lamella.complex128)


PROGRAMS = [
    lambda z: z.conj(),
    lambda z: z.mH,
    lambda z: z.adjoint(),
    lambda z: z.conj().T,
    lambda z: z.conj()[0],
    lambda z: z.conj().real,
    lambda z: z.conj().imag,
    lambda z: z.conj().imag.view(-1),
    lambda z: z.conj().conj(),
    lambda z: z.conj().reshape(4),
    lambda z: z.conj().contiguous(),
    lambda z: z.conj().t().contiguous(),
    lambda z: z.conj().detach(),
    lambda z: z.conj().unbind()[1],
    lambda z: z.conj().expand(3, 2, 2),
    lambda z: z.conj().clone(),
    lambda z: z.conj().resolve_conj(),
    lambda z: z.resolve_conj(),
    lambda z: z.conj().imag.resolve_neg(),
    lambda z: z.conj().to(z.dtype),
    lambda z: z.conj() + 1,
    lambda z: z.conj() @ z.mH,
    lambda z: z.conj().conj_physical(),
    lambda z: z.conj().abs(),
]


@pytest.mark.parametrize("index", range(len(PROGRAMS)))
def test_flags(index):
    mine, theirs = numbers(), torch.tensor(numbers().tolist(), dtype=torch.complex128)
    got, expected = PROGRAMS[index](mine), PROGRAMS[index](theirs)
    assert (got.is_conj(), got.is_neg()) == (expected.is_conj(), expected.is_neg())
    shares = expected.untyped_storage().data_ptr() == theirs.untyped_storage().data_ptr()
    assert (got.untyped_storage().data_ptr() == mine.untyped_storage().data_ptr()) == shares
    assert got.shape == tuple(expected.shape)
    assert torch.allclose(
        torch.tensor(got.tolist(), dtype=expected.dtype), expected.resolve_conj().resolve_neg()
    )


WRITES = [
    lambda z: z.conj().mul_(2j),
    lambda z: z.conj()[0].add_(1j),
    lambda z: z.conj().copy_(z),
    lambda z: z.conj().imag.add_(3),
    lambda z: z.conj().imag[0].zero_(),
    lambda z: z.mH.fill_(2 + 1j),
    lambda z: z.conj().__setitem__((0, 1), 7j),
    lambda z: z.__setitem__(0, z.conj()[1]),
    lambda z: z.conj().t_().add_(1j),
    lambda z: z.add_(z.conj()),
]


@pytest.mark.parametrize("index", range(len(WRITES)))
def test_writes(index):
    mine, theirs = numbers(), torch.tensor(numbers().tolist(), dtype=torch.complex128)
    WRITES[index](mine)
    WRITES[index](theirs)
    assert mine.tolist() == theirs.tolist()


def test_reading():
    z = numbers().conj()
    assert z.tolist() == [[1 - 2j, 3 + 4j], [5j, 6]]
    assert z[0, 0].item() == 1 - 2j and complex(z[0, 1]) == 3 + 4j
    assert float(z.imag[0, 0]) == -2.0
    assert repr(z) == repr(z.resolve_conj())
    with pytest.raises(RuntimeError, match="expected resolved elements"):
        z.numpy()
    assert z.resolve_conj().numpy().tolist() == z.tolist()


# ---- Gradients -----------------------------------------------------------------------------------

GRADIENTS = [
    lambda z: z.conj() * z,
    lambda z: z.conj().imag * 2,
    lambda z: z.mH @ z.conj(),
    lambda z: (z * 1).conj().mul_(2 + 1j),
    lambda z: z.conj().real.exp(),
]


def writes_through(z):
    y = z * 2
    y.conj()[0].mul_(z[1])
    y.conj().imag.add_(z.real)
    return y * y


def writes_negative(z):
    y = z * (1 + 1j)
    part = y.conj().imag
    part.mul_(z.real)
    return part * y.real


@pytest.mark.parametrize("index", range(len(GRADIENTS) + 2))
def test_gradients(index):
    function = [*GRADIENTS, writes_through, writes_negative][index]
    z = numbers().requires_grad_()
    assert lamella.autograd.gradcheck(function, (z,), check_forward_ad=index != 5)
    assert lamella.autograd.gradgradcheck(function, (z,))
    theirs = torch.tensor(numbers().tolist(), dtype=torch.complex128, requires_grad=True)
    out, expected = function(z), function(theirs)
    out.abs().sum().backward()
    expected.abs().sum().backward()
    assert torch.allclose(
        torch.tensor(z.grad.tolist(), dtype=torch.complex128), theirs.grad.resolve_conj()
    )


def test_adjoint_of_a_number():
    z = lamella.tensor(1 + 2j)
    for taken in (z.adjoint(), z.mH, z.H):
        assert taken.item() == 1 - 2j
        assert taken.is_conj()
    assert z.mT.item() == 1 + 2j
    for name in ("mT", "mH", "H"):
        with pytest.raises(RuntimeError) as caught:
            getattr(lamella.ones(3), name)
        expected = "be a matrix" if name == "H" else "have at least 2 dimensions"
        name = "matrix_H" if name == "H" else name
        assert str(caught.value) == f"{name}: expected 'self' to {expected}, got [3]"
