"""functionalize: the same results without writes, and a functional program below."""

import pytest

import lamella
from lamella import _C
from lamella.func import functionalize, grad, vjp

MODES = ("mutations", "mutations_and_views")


def start():
    return lamella.arange(12, dtype=lamella.float64).reshape(3, 4)


def complex_start():
    return lamella.complex(start(), start() + 1)


# ---- Programs ------------------------------------------------------------------------------------


def writes_views(x):
    row = x[0]
    row.add_(1)
    x[:, 1].mul_(2)
    return x.sum(0), row


def writes_what_it_made(x):
    y = lamella.zeros(3, 4, dtype=x.dtype)
    flipped = y.t()
    flipped.copy_(x.t())
    flipped[1].zero_()
    return y


def writes_parts(x):
    a, b = x.split(2, 1)
    a.mul_(b)
    first, *_ = x.unbind(0)
    first.sub_(1)
    for part in x.chunk(2):
        part.add_(part)
    return x + 1, b


def writes_parts_of_given_sizes(x):
    lamella.split_with_sizes(x, [1, 3], 1)[1].neg_()
    return x


def turns(x):
    x.transpose_(0, 1)
    x[0].add_(5)
    return x * 2


def changes_dims(x):
    x.unsqueeze_(0)
    x.squeeze_()
    x.t_()
    return x.reshape(-1)


def resizes(x):
    y = x.clone()
    y.resize_(2, 3)
    y.add_(1)
    z = x.clone()
    z.resize_(12)
    return y, z


def grows(x):
    y = x.clone()
    view = y[0]
    y.resize_(5, 4)
    y[3:].zero_()
    y.add_(1)
    return y, view


def sets(x):
    y = lamella.zeros(2, dtype=x.dtype)
    y.set_(x)
    y[0, 0] = 100
    z = lamella.zeros(2, dtype=x.dtype)
    z.set_(x, 1, (2, 2), (4, 1))
    z.mul_(3)
    return y, z


def writes_out(x):
    lamella.add(x, 1, out=x)
    out = lamella.empty(0, dtype=x.dtype)
    lamella.mul(x, 2, out=out)
    values, places = lamella.empty(0, dtype=x.dtype), lamella.empty(0, dtype=lamella.int64)
    lamella.sort(x, descending=True, out=(values, places))
    return out, values, places


def strides(x):
    x.as_strided((2, 2), (4, 1), 1).zero_()
    return x.unfold(1, 2, 1) * 1


def unfolds(x):
    windows = x[0].unfold(0, 2, 2)
    windows[0].fill_(7)
    return x


def other_types(x):
    x.view(lamella.int64)[0].zero_()
    x.view(lamella.int32)[1].zero_()
    return x


def complex_parts(z):
    z.real.add_(1)
    lamella.view_as_real(z)[..., 1].mul_(2)
    z.imag[0].zero_()
    z.conj().mul_(2 + 1j)
    z.conj().imag.add_(3)
    return z, z.mH


def as_complex(x):
    lamella.view_as_complex(x.reshape(3, 2, 2))[0].mul_(1j)
    return x


def indexes(x):
    x[x > 3] = 0
    x[0, 1:3] = 7
    x[[0, 2], 1] += 1
    x.index_put_((lamella.tensor([1]),), lamella.tensor(4.0, dtype=x.dtype), accumulate=True)
    x.masked_fill_(x == 4, 2)
    return x.sum().item()


def lists(x):
    lamella._foreach_add_([x[0], x[1]], 1.0)
    lamella._foreach_mul_(list(x.unbind()), 2.0)
    return x


def diagonals(x):
    y = x.expand(2, 3, 4).sum(0)
    y.div_(2)
    return y.diagonal().fill_(1), y


def constants(x):
    y = lamella.tensor([1.0, 2.0], dtype=x.dtype)
    y.add_(x[0, 0])
    y[0] = 9
    return y


def branches(x):
    if x.sum() > 0:
        x.neg_()
    while x[0, 1] < 10:
        x[0, 1].add_(4)
    return float(x[0, 1])


def converts(x):
    n = lamella.arange(4)
    n.mul_(lamella.tensor(3))
    half = lamella.ones(4, dtype=lamella.float32)
    half.add_(x[0])
    return n, half


def reads_views_of_results(x):
    y = (x.t() + 1).t()
    return y.view(-1), y


PROGRAMS = [
    value
    for value in list(globals().values())
    if callable(value)
    and getattr(value, "__module__", "") == __name__
    and value not in (start, complex_start)
]


def tensors(value):
    if isinstance(value, lamella.Tensor):
        return [value]
    return [t for item in value for t in tensors(item)] if isinstance(value, tuple) else []


def numbers(value):
    if isinstance(value, lamella.Tensor):
        return value.resolve_conj().resolve_neg().tolist()
    return [numbers(item) for item in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program, mode):
    make = complex_start if program is complex_parts else start
    x, y = make(), make()
    expected, got = program(x), functionalize(program, remove=mode)(y)
    assert numbers(got) == numbers(expected)
    assert numbers(y) == numbers(x)
    assert (y.shape, y.stride(), y.storage_offset()) == (x.shape, x.stride(), x.storage_offset())
    if mode == "mutations":
        place = x.untyped_storage().data_ptr(), y.untyped_storage().data_ptr()
        shares = [t.untyped_storage().data_ptr() == place[0] for t in tensors(expected)]
        assert [t.untyped_storage().data_ptr() == place[1] for t in tensors(got)] == shares


# Tensors that share a storage see it grow in PyTorch.
COMPARED = [program for program in PROGRAMS if program not in (grows, sets)]


@pytest.mark.parametrize("program", COMPARED, ids=lambda program: program.__name__)
def test_against_torch(program):
    torch = pytest.importorskip("torch")
    theirs = type(program)(program.__code__, {**program.__globals__, "lamella": torch})
    make = complex_start if program is complex_parts else start
    x = make()
    y = torch.from_dlpack(make())
    expected = theirs(y)
    got = functionalize(program)(x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for g, e in zip(got if isinstance(got, tuple) else (got,), expected):
        if isinstance(e, torch.Tensor):
            assert numbers(g) == e.resolve_conj().resolve_neg().tolist()
    assert x.tolist() == y.tolist()


# ---- What is called below ------------------------------------------------------------------------


def test_operators_that_write_have_forms():
    """No operator is left out: each that writes has a functional form, each view a copy."""
    left = []
    views = 0
    writes = 0
    for name, overload in _C._operator_names():
        schema = _C._operator(name, overload or "default")._schema
        text = str(schema)
        returned = text.rpartition("->")[2]
        mutable = "!" in text
        view = not mutable and "(a" in returned
        if not mutable and not view:
            continue
        writes += mutable
        views += view
        metadata = name in (
            "aten::resize_",
            "aten::resize_as_",
            "aten::set_",
            "aten::detach_",
        )
        form = _C._functional_form(name, overload)
        if metadata:
            continue
        if form is None:
            left.append(text)
            continue
        made = str(_C._operator(form[0], form[1] or "default")._schema)
        if "inplace_view" not in getattr(schema, "tags", ()) and "!" in made:
            left.append(f"{text}: {made}")
    assert writes > 500 and views > 60
    assert not left


@pytest.mark.parametrize(
    "name, overload, expected",
    [
        ("aten::add_", "Tensor", ("aten::add", "Tensor")),
        ("aten::add", "out", ("aten::add", "Tensor")),
        ("aten::sort", "values_stable", ("aten::sort", "stable")),
        ("aten::max", "dim_max", ("aten::max", "dim")),
        ("aten::sigmoid_backward", "grad_input", ("aten::sigmoid_backward", "")),
        ("aten::transpose_", "", ("aten::transpose", "int")),
        ("aten::select", "int", ("aten::select_copy", "int")),
        ("aten::zeros", "out", ("aten::zeros", "")),
    ],
)
def test_forms(name, overload, expected):
    assert _C._functional_form(name, overload) == expected


# ---- Foreign operators ---------------------------------------------------------------------------


@pytest.fixture
def mine():
    library = lamella.library.Library("functionalized", "DEF")
    library.define("twice_(Tensor(a!) x) -> Tensor(a!)")
    library.define("count(Tensor x, Tensor(a!) counter) -> Tensor")
    library.define("fill(Tensor(a!)[] xs, float value) -> ()")
    library.define("odd(Tensor(a) x) -> Tensor(a)")
    library.define("halves(Tensor(a) x) -> Tensor(a)[]")

    def twice_(x):
        x.copy_(x + x)
        return x

    def count(x, counter):
        counter.copy_(counter + 1)
        return x * 2

    def fill(xs, value):
        for x in xs:
            x.copy_(lamella.full_like(x, value))

    library.impl("twice_", twice_, "CompositeExplicitAutograd")
    library.impl("count", count, "CompositeExplicitAutograd")
    library.impl("fill", fill, "CompositeExplicitAutograd")
    library.impl("odd", lambda x: x[1::2], "CompositeExplicitAutograd")
    library.impl("halves", lambda x: list(x.chunk(2)), "CompositeExplicitAutograd")
    yield lamella.ops.functionalized
    library.close()


@pytest.mark.parametrize("mode", MODES)
def test_foreign(mine, mode):
    def program(x):
        mine.twice_(x[0])
        counters = lamella.zeros(2, dtype=x.dtype)
        y = mine.count(x, counters[1])
        x.add_(counters[1])
        mine.fill([x[2], y[0]], 4.0)
        mine.odd(x[0]).mul_(10)
        first, second = mine.halves(x[1])
        second.add_(3)
        x.mul_(2)
        first.add_(second)
        return y, mine.odd(x[1])

    x, y = start(), start()
    expected, got = program(x), functionalize(program, remove=mode)(y)
    assert numbers(got) == numbers(expected)
    assert numbers(y) == numbers(x)


# ---- Arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_arguments_that_share_memory(mode):
    def program(x, row, again):
        row.add_(1)
        again[2] = 5
        x.mul_(2)
        return x.sum(), row

    expected, got = start(), start()
    one = program(expected, expected[1], expected)
    two = functionalize(program, remove=mode)(got, got[1], got)
    assert numbers(got) == numbers(expected) and numbers(one) == numbers(two)


def test_arguments_themselves_come_back():
    x = start()
    y, (z, same) = functionalize(lambda x: (x.add_(1), (x[0], x)))(x)
    assert y is x and same is x and z is not x
    z.zero_()
    assert x[0].sum() == 0
    kept = functionalize(lambda x, k=2: {"a": [x.mul_(k)]})(x, k=3)
    assert kept["a"][0] is x


def test_lazy_and_strided_arguments():
    for make in (lambda: complex_start().conj(), lambda: complex_start().t()[1:]):
        a, b = make(), make()

        def program(z):
            z[0].mul_(2j)
            return z.real + 1

        assert numbers(program(a)) == numbers(functionalize(program)(b))
        assert numbers(a) == numbers(b)


def test_errors_are_those_of_plain_calls():
    for program in (
        lambda x: lamella.arange(4).add_(1.5),
        lambda x: x.add_(lamella.ones(5, 3, 4, dtype=x.dtype)),
        lambda x: x[0].expand(3, 4).add_(1),
        lambda x: x.view(5),
    ):
        with pytest.raises(RuntimeError) as plain:
            program(start())
        with pytest.raises(RuntimeError) as through:
            functionalize(program)(start())
        assert str(through.value) == str(plain.value)


def test_tensors_from_outside():
    outside = start()
    assert functionalize(lambda x: x + outside[0])(start())[0].tolist() == [0, 2, 4, 6]
    with pytest.raises(RuntimeError) as error:
        functionalize(lambda x: outside.add_(x))(start())
    assert str(error.value) == (
        "add_: expected 'self' to be an argument of the function that functionalize() was given, "
        "or made in it, since it is written in place; got a tensor from outside"
    )
    with pytest.raises(RuntimeError, match="got a tensor from outside"):
        functionalize(lambda x: outside[0].add_(x[0]))(start())
    assert outside.tolist() == start().tolist()


def test_wrappers_end_with_the_session():
    kept = []
    functionalize(lambda x: kept.append(x * 2))(start())
    with pytest.raises(RuntimeError, match="kept beyond its end"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="remove"):
        functionalize(lambda x: x, remove="views")


def test_nothing_is_written_where_the_function_fails():
    x = start()

    def fails(x):
        x.zero_()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        functionalize(fails)(x)
    assert x.tolist() == start().tolist()
    assert (start() + 1).tolist() == (start().add_(1)).tolist()


def test_nested():
    def inner(x):
        x.add_(1)
        return x * 2

    def outer(x):
        y = functionalize(inner, remove="mutations_and_views")(x[0])
        y.mul_(x[1])
        return y

    a, b = start(), start()
    assert outer(a).tolist() == functionalize(outer)(b).tolist()
    assert a.tolist() == b.tolist()


# ---- With gradients ------------------------------------------------------------------------------


def differentiable(x):
    y = x * 2
    y[0].mul_(x[1])
    y.t()[1].add_(3)
    z = y.view(-1)
    z[5:].exp_()
    return y.sin().sum()


@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode):
    x = (start() / 10).requires_grad_()
    (expected,) = lamella.autograd.grad(differentiable(x), x)
    through = functionalize(differentiable, remove=mode)
    (got,) = lamella.autograd.grad(through(x), x)
    assert lamella.allclose(got, expected)
    assert lamella.allclose(grad(through)(start() / 10), expected)
    assert lamella.allclose(functionalize(grad(differentiable), remove=mode)(x.detach()), expected)
    assert lamella.autograd.gradcheck(through, (x,), check_forward_ad=True)
    assert lamella.autograd.gradgradcheck(through, (x,))


def test_gradients_of_made_forms():
    def program(x):
        y = x * 1
        y[0].zero_()  # has no functional form of its own
        return (y * y).sum()

    x = start()
    assert lamella.allclose(grad(functionalize(program))(x), grad(program)(x))


def test_grad_modes_inside():
    def program(x):
        with lamella.no_grad():
            y = x * 2
        return x + y.detach(), y

    x = start().requires_grad_()
    first, second = functionalize(program)(x)
    assert first.requires_grad and not second.requires_grad
    _, pull = vjp(functionalize(lambda x: x.clone().mul_(3)), start())
    assert pull(lamella.ones(3, 4, dtype=lamella.float64))[0].tolist() == [[3.0] * 4] * 3


# ---- With a trace around -------------------------------------------------------------------------


def test_a_trace_records_the_pure_program():
    def program(x):
        row = x[0]
        row.add_(1)
        return x * 2

    through = functionalize(program, remove="mutations_and_views")
    graph = lamella.trace(through, start())
    assert graph.operators() == {
        "aten::select_copy.int": 1,
        "aten::add.Scalar": 1,
        "aten::select_scatter": 1,
        "aten::mul.Scalar": 1,
        "aten::copy_": 1,
    }
    x, y = start(), start()
    assert graph(x).tolist() == program(y).tolist()
    assert x.tolist() == y.tolist()


def test_guards_do_not_hide_the_layer():
    def f(x):
        y = x.clone()
        y.sin_()
        return y

    x = lamella.tensor([0.5, 1.0])
    hidden = lamella._C._exclude_keys(lamella._C._dispatch_key_bits("Functionalize"), True)
    try:
        assert lamella.func.functionalize(f)(x).tolist() == x.sin().tolist()
        assert lamella._C._thread_keys()[1] & hidden == hidden
    finally:
        lamella._C._exclude_keys(hidden, False)


def test_writes_through_views_that_overlap_are_refused():
    def windows(x):
        return (x + x).unfold(1, 3, 2).abs_()

    with pytest.raises(RuntimeError) as caught:
        lamella.func.functionalize(windows)(lamella.ones(1, 5))
    assert str(caught.value) == (
        "abs_: expected 'self' to have memory of its own for each element it writes, got one "
        "expanded to [1, 2, 3]; clone it first"
    )


def test_out_arguments_without_aliases_take_the_shape_of_results():
    def into(x):
        out = lamella.empty(())
        lamella.add(x, x, out=out)
        return out * 2

    x = lamella.ones(2, 3)
    graph = lamella.trace(lamella.func.functionalize(into), x)
    assert [line.split("aten::")[1].split("(")[0] for line in graph.code.splitlines()[1:-1]] == [
        "empty.memory_format",
        "add.Tensor",
        "mul.Scalar",
    ]
    assert graph(x).tolist() == into(x).tolist() == [[4.0] * 3] * 2
