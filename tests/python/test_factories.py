"""Factories, ranges and random numbers against PyTorch."""

import pytest
from operator_cases import ALL, check, make, torch

import lamella


def same_seed(seed=7):
    """Both default generators at the same place."""
    torch.manual_seed(seed)
    lamella.manual_seed(seed)


@pytest.mark.parametrize(
    "build",
    [
        lambda t: t([t([1.0]), t([2.0])]),
        lambda t: t([t([[1.0]]), t(3.0), 2]),
        lambda t: t([2.0, t([3])]),
        lambda t: t([[t([3])], [t([[4]])]]),
        lambda t: t((t([1 + 2j]), t([True]))),
        lambda t: t([t([1.0], requires_grad=True)]).detach(),
    ],
)
def test_tensors_in_sequences_are_numbers(build):
    ours, theirs = build(lamella.tensor), build(torch.tensor)
    assert ours.tolist() == theirs.tolist() and str(ours.dtype)[8:] == str(theirs.dtype)[6:]


def test_tensors_in_sequences_have_one_element():
    wanted = "tensor: expected tensors inside sequences to have one element; use stack()"
    for values in ([1.0, 2.0], []):
        with pytest.raises(ValueError) as error:
            lamella.tensor([lamella.tensor(values)])
        assert str(error.value) == wanted


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_filling_of_other_layouts(dtype):
    check("fill_.Scalar", make(3, 4, dtype=dtype).t(), 1)
    check("fill_.Scalar", make(3, 8, dtype=dtype)[:, ::2], 1)
    check("zero_", make(3, 8, dtype=dtype)[:, ::2])


def test_dtype_is_inferred():
    check("full", [2], True)
    check("full", [2], 3)
    check("full", [2], 3.5)
    check("full", [2], 1 + 2j)
    check("arange", 5)
    check("arange", 5.0)
    check("arange.start", 1, 5.5)
    check("zeros", [])


def test_spaces_of_complex_numbers():
    check("linspace", 0, 2j, 5, dtype=torch.complex128)
    for base in (2.0, -2.0):
        check("logspace", 1, 1 + 2j, 7, base, dtype=torch.complex128)
        check("logspace", 1j, 3, 1, base, dtype=torch.complex128)


def test_empty():
    for name, args in (
        ("empty.memory_format", ([2, 3],)),
        ("empty_strided", ([2, 3], [1, 2])),
        ("new_empty", (make(2, dtype=torch.int32), [4])),
        ("empty_like", (make(3, 4).t(),)),
        ("empty_like", (make(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),)),
        ("empty_like", (make(3, 8)[:, ::2],)),
        ("empty_like", (make(3, 1).expand(3, 4),)),
        ("empty_like", (make(5, 4, 3).permute(1, 0, 2)[:, ::2],)),
    ):
        from operator_cases import run, to_lamella

        expected = run(torch, name, args, {})
        got = run(lamella, name, [to_lamella(a) for a in args], {})
        assert tuple(got.shape) == tuple(expected.shape)
        assert tuple(got.stride()) == tuple(expected.stride()), name
        assert str(got.dtype).rsplit(".", 1)[1] == str(expected.dtype).rsplit(".", 1)[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_random_streams_are_pytorchs(dtype):
    same_seed()
    check("rand", [5], dtype=dtype)
    check("rand", [100], dtype=dtype)
    check("randn", [5], dtype=dtype)
    check("randn", [37], dtype=dtype)
    check("randint", 100, [20])
    check("randint.low", -5, 1 << 40, [20])
    check("randperm", 30)
    check("uniform_", make(3, 4, dtype=dtype), -2.0, 3.0)
    check("normal_", make(3, 4, dtype=dtype), 1.0, 3.0)
    check("uniform_", make(9, dtype=torch.bfloat16))
    check("random_", make(5, dtype=torch.int8))
    check("normal_", torch.zeros(9, dtype=torch.complex64), 3.0, 2.0)
    turned = make(3, 4, dtype=dtype, low=0, high=1).t()  # drawn by index, not by memory
    check("bernoulli", turned)
    check("bernoulli.p", turned, 0.5)
    check("normal.Tensor_float", turned, 2.0)
    check("normal.float_Tensor", 1.0, turned)
    check("normal.Tensor_Tensor", turned, turned)


def test_range_keeps_the_shape_of_out_with_as_many_elements():
    """As in PyTorch; only another number of elements resizes it."""
    base = lamella.zeros(20)
    for call in (lamella.ops.aten.range.out_, lamella.range):
        base.zero_()
        strided = base[::3][:5]
        call(0, 4, out=strided)
        assert base.tolist() == [0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]
        matrix = lamella.zeros(4, 5).t()[:, ::2]
        call(0, 9, out=matrix)
        assert matrix.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
        assert matrix.stride() == (1, 10)


@pytest.mark.parametrize("space", ["linspace", "logspace"])
@pytest.mark.parametrize("tensors", [(), (0,), (1,), (0, 1)], ids=str)
def test_spaces_keep_the_shape_of_out_with_as_many_elements(space, tensors):
    def fill(p, out):
        ends = [p.tensor(end) if i in tensors else end for i, end in enumerate((0.5, 2.5))]
        return getattr(p, space)(*ends, 6, out=out)

    for build in (
        lambda p: p.zeros(2, 3),
        lambda p: p.zeros(3, 2).t(),
        lambda p: p.zeros(12)[::2],
        lambda p: p.zeros(4, 6)[::2, ::2],
        lambda p: p.zeros(2, 3, dtype=p.float64),
        lambda p: p.zeros(0),
    ):
        ours, theirs = build(lamella), build(torch)
        assert fill(lamella, ours) is ours
        fill(torch, theirs)
        assert ours.shape == theirs.shape and ours.stride() == theirs.stride()
        torch.testing.assert_close(torch.from_numpy(ours.numpy()), theirs)
