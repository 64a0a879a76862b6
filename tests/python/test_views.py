"""Views and copies against PyTorch: shapes, strides, offsets, values, memory formats, errors."""

import pytest
from operator_cases import ALL, check, make, torch

X = make(2, 3, 4)
T = make(4, 3, 2).permute(2, 1, 0)
IMAGE = make(2, 3, 4, 5)
LAST = IMAGE.contiguous(memory_format=torch.channels_last)

VIEWS = [
    ("view", X[:, :, 1:3], [2, 3, 1, 2]),
    ("view", make(0, 3), [3, 0, 2]),
    ("view.dtype", make(4), torch.int32),
    ("view.dtype", make(4), torch.float16),
    ("view.dtype", make(2, 4), torch.float64),
    ("reshape", T, [4, 6]),
    ("reshape", T, [2, 12]),
    ("_unsafe_view", X, [24]),
    ("alias", T),
    ("detach", T),
    ("mT", X),
    ("numpy_T", X),
    ("adjoint", X),
    *[(name, make()) for name in ("adjoint", "mT", "mH", "matrix_H")],
    ("chunk", make(0, 2), 3),
    ("tensor_split.sections", make(7), 3),
    ("tensor_split.indices", make(7), [2, 5]),
    ("unfold", make(), 0, 1, 1),
    ("flatten.using_ints", T),
]


@pytest.mark.parametrize("case", VIEWS, ids=lambda c: c[0] if isinstance(c, tuple) else "")
def test_views(case):
    check(*case)


INPLACE_VIEWS = [
    ("transpose_", X, 0, 1),
    ("t_", make(2, 3)),
    ("unsqueeze_", X, 1),
    ("squeeze_", make(1, 2, 1)),
    ("squeeze_.dim", make(1, 2, 1), 0),
    ("as_strided_", X, [2, 2], [1, 2]),
]


@pytest.mark.parametrize("case", INPLACE_VIEWS, ids=lambda c: c[0])
def test_views_in_place(case):
    check(*case)


FORMATS = [torch.contiguous_format, torch.channels_last, torch.preserve_format]
INPUTS = {
    "contiguous": IMAGE,
    "channels_last": LAST,
    "gaps": make(2, 6, 4, 5)[:, ::2],
    "permuted": make(5, 4, 3, 2).permute(3, 2, 1, 0),
    "expanded": make(2, 1, 4, 5).expand(2, 3, 4, 5),
    "one_channel": make(2, 1, 4, 5),
    "one_pixel": make(2, 3, 1, 1),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("memory_format", FORMATS)
def test_memory_formats(name, memory_format):
    x = INPUTS[name]
    check("clone", x, memory_format=memory_format)
    check("_to_copy", x, dtype=torch.float64, memory_format=memory_format)
    check("to.dtype", x, torch.float16, False, False, memory_format)
    if memory_format != torch.preserve_format:
        check("contiguous", x, memory_format=memory_format)


def test_channels_last_3d():
    x = make(2, 3, 2, 4, 5)
    check("contiguous", x, memory_format=torch.channels_last_3d)
    check("clone", x.contiguous(memory_format=torch.channels_last_3d))


@pytest.mark.parametrize("source", ALL + [torch.float8_e4m3fn, torch.uint16], ids=str)
@pytest.mark.parametrize("target", ALL + [torch.float8_e5m2, torch.uint32], ids=str)
def test_every_cast(source, target):
    if source.is_complex and not target.is_complex:
        x = make(3, 5, dtype=source).real.to(source)
    elif source in (torch.float8_e4m3fn, torch.uint16):
        x = make(3, 5, low=0).to(source)
    else:
        unsigned = target in (torch.uint8, torch.uint32)
        x = make(3, 5, dtype=source, low=0 if unsigned else -4)
    out = torch.zeros(3, 5).to(target)
    check_copy(out, x)


def check_copy(out, x):
    if out.dtype in (torch.float8_e5m2, torch.uint32) or x.dtype in (
        torch.float8_e4m3fn,
        torch.uint16,
    ):
        from operator_cases import to_lamella

        import lamella

        mine = to_lamella(x)
        wide = lamella.ops.aten._to_copy.default(
            lamella.ops.aten._to_copy.default(mine, dtype=to_lamella(out.dtype)),
            dtype=lamella.complex64 if out.dtype.is_complex else lamella.float32,
        )
        expected = x.to(out.dtype).to(torch.complex64 if out.dtype.is_complex else torch.float32)
        assert torch.equal(torch.from_dlpack(wide), expected)
        return
    check("copy_", out, x)


COPIES = [
    (torch.zeros(3, 4), make(4)),
    (torch.zeros(4, 3).t(), make(3, 4)),
    (torch.zeros(3, 4), make(4, 3).t()),
    (torch.zeros(70, 90), make(90, 70).t()),
    (torch.zeros(300, 500), make(500, 300).t()),
    (torch.zeros(2, 70, 90), make(2, 90, 70).transpose(1, 2)),
    (torch.zeros(3, 8)[:, ::2], make(3, 4)),
    (torch.zeros(3, 4), make(3, 8)[:, ::2]),
    (torch.zeros(3, 4, dtype=torch.float64), make(8, 3)[::2].t()),
    (torch.zeros(200, 300, dtype=torch.float16), make(300, 200).t()),
    (torch.zeros(2, 3, 4, 5), LAST),
    (torch.zeros(()), make(1)[0]),
    (torch.zeros(0, 3), make(0, 3)),
    (torch.zeros(200000), make(200000)),
    (torch.zeros(200000, dtype=torch.float64), make(200000)),
]


@pytest.mark.parametrize("index", range(len(COPIES)))
def test_copies(index):
    check("copy_", *COPIES[index])


def test_to_returns_itself_where_nothing_changes():
    from operator_cases import to_lamella

    import lamella

    x = to_lamella(X)
    assert lamella.ops.aten.to.dtype(x, lamella.float32).storage_offset() == 0
    check("to.dtype", X, torch.float32)
    check("to.dtype", X, torch.float32, False, True)
    check("to.other", X, make(2, dtype=torch.int64))
    check("type_as", X, make(2, dtype=torch.float64))
    check("item", make(1, 1), meta=False)
    check("item", make(1, dtype=torch.complex64), meta=False)


def test_resize():
    check("resize_", make(2, 3), [3, 2])
    check("resize_", make(2, 3), [2, 2])
    check("resize_", make(2, 3, 4, 5), [2, 3, 4, 5], memory_format=torch.channels_last)
