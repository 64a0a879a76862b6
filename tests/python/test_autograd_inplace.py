"""In-place writes and views: which are allowed, and their gradients."""

import pytest

import lamella

F64 = lamella.float64


def leaf(*values):
    return lamella.tensor(values, dtype=F64, requires_grad=True)


def same_as_torch(program, *shapes):
    """Runs a program of both packages on the same leaves; compares value and gradients."""
    torch = pytest.importorskip("torch")
    values = []
    for package in (lamella, torch):
        leaves = [
            (package.arange(float(_numel(shape)), dtype=package.float64) + 1)
            .reshape(shape)
            .detach()
            .requires_grad_()
            for shape in shapes
        ]
        out = program(package, *leaves)
        out.backward(package.arange(float(out.numel()), dtype=package.float64).reshape(out.shape))
        values.append([out.tolist()] + [each.grad.tolist() for each in leaves])
    assert values[0] == values[1]


def n(package, value):
    return package.tensor(value, dtype=package.float64)


def _numel(shape):
    count = 1
    for size in shape:
        count *= size
    return count


PROGRAMS = {
    "write of a computed tensor": lambda p, x: (x * n(p, 2.0)).mul_(n(p, 3.0)),
    "write twice": lambda p, x: (x * n(p, 2.0)).mul_(n(p, 3.0)).add_(n(p, 1.0)).mul_(x),
    "write by another": lambda p, x, y: (x * n(p, 2.0)).mul_(y),
    "view of a written tensor": lambda p, x: (x * n(p, 2.0)).mul_(n(p, 3.0))[1],
    "write through a view": lambda p, x: _through(p, x, lambda y: y[0].mul_(n(p, 3.0))),
    "write through a view of a view": lambda p, x: _through(
        p, x, lambda y: y[1][0:1].mul_(n(p, 3.0))
    ),
    "write through a transposed view": lambda p, x: _through(
        p, x, lambda y: y.t()[0].mul_(n(p, 3.0))
    ),
    "two views of one base": lambda p, x: _through(
        p, x, lambda y: (y[0].mul_(n(p, 3.0)), y[1].mul_(n(p, 5.0)), y.mul_(n(p, 2.0)))
    ),
    "an older view sees a later write": lambda p, x: _older(p, x),
    "write of the base after the view": lambda p, x: _base_after(p, x),
    "assignment": lambda p, x, y: _assign(p, x, y),
    "copy into a view": lambda p, x, y: _through(p, x, lambda z: z[0].copy_(y[1])),
    "zeroed view": lambda p, x: _through(p, x, lambda y: y[0].zero_()),
    "filled": lambda p, x: _through(p, x, lambda y: y[0].fill_(3.0)),
    "write of a tensor without gradients": lambda p, x: p.zeros(2, 2, dtype=p.float64).add_(x),
    "write through a view without gradients": lambda p, x: _plain_base(p, x),
    "detached alias": lambda p, x: _detached(p, x),
}


def _through(p, x, write):
    y = x * n(p, 1.0)
    write(y)
    return y


def _older(p, x):
    y = x * n(p, 1.0)
    view = y[0]
    y.mul_(n(p, 3.0))
    return view * n(p, 2.0)


def _base_after(p, x):
    y = x * n(p, 1.0)
    view = y[1]
    view.mul_(n(p, 2.0))
    other = y[1]
    y[0].mul_(n(p, 7.0))
    return view + other


def _assign(p, x, y):
    z = x * n(p, 1.0)
    z[1] = y[0]
    return z


def _plain_base(p, x):
    base = p.zeros(2, 2, dtype=p.float64)
    base[0].add_(x[1])
    return base * n(p, 2.0)


def _detached(p, x):
    y = x * n(p, 2.0)
    d = y.detach()
    d.mul_(n(p, 0.0))
    return y + n(p, 1.0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    program = PROGRAMS[name]
    count = program.__code__.co_argcount - 1
    same_as_torch(program, *[(2, 2)] * count)


def test_leaves_are_not_written():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError) as error:
        x.mul_(n(lamella, 2.0))
    assert str(error.value) == (
        "mul_: expected 'self' not to be a leaf that requires gradients, since it is written in "
        "place; write it under no_grad(), or write a copy"
    )
    with pytest.raises(RuntimeError, match="mul_: expected 'self' not to be a view of a leaf"):
        x[0].mul_(n(lamella, 2.0))
    with lamella.no_grad():
        x.mul_(n(lamella, 2.0))
    assert x.tolist() == [2.0, 4.0] and x.is_leaf and x.requires_grad
    # A view that is older than the leaf's wish for gradients.
    x = n(lamella, [1.0, 2.0])
    view = x[:1]
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="mul_: expected 'self' not to be a view of a leaf"):
        view.mul_(2)
    with lamella.no_grad():
        view.mul_(2)
    assert x.tolist() == [2.0, 2.0]


def test_views_made_without_gradients_are_not_written():
    x = leaf(1.0, 2.0) * n(lamella, 1.0)
    with lamella.no_grad():
        view = x[0]
    with pytest.raises(RuntimeError, match="to be a view that was made while gradients"):
        view.mul_(x[1])


def test_writes_of_saved_tensors_are_found():
    x = leaf(1.0, 2.0)
    y = x * n(lamella, 1.0)
    z = y * y
    y.add_(n(lamella, 1.0))
    with pytest.raises(RuntimeError) as error:
        z.backward(lamella.ones_like(z))
    assert str(error.value).startswith(
        "MulBackward0: expected 'other' as it was when it was saved, at version 0, got version 1"
    )


def test_writes_through_views_are_found():
    x = leaf(1.0, 2.0)
    y = x * n(lamella, 1.0)
    z = y.exp()
    z[0].mul_(n(lamella, 2.0))
    with pytest.raises(RuntimeError, match="ExpBackward0: expected 'result' as it was"):
        z.backward(lamella.ones_like(z))


def test_out_arguments_have_no_gradients():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="mul: expected no argument to require gradients"):
        lamella.mul(x, x, out=lamella.ones(1, dtype=F64))
    with lamella.no_grad():
        lamella.mul(x, x, out=lamella.ones(1, dtype=F64))


def test_inference_tensors():
    with lamella.inference_mode():
        x = lamella.ones(2, dtype=F64)
        x.mul_(n(lamella, 2.0))
    y = leaf(1.0, 2.0)
    (y + x).backward(lamella.ones(2, dtype=F64))
    assert y.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="not to be made in inference mode"):
        y * x
    with pytest.raises(RuntimeError, match="not to be made in inference mode"):
        x.mul_(y)


def test_a_written_tensor_has_a_new_node():
    x = leaf(1.0)
    y = x * n(lamella, 1.0)
    before = y.grad_fn
    y.mul_(n(lamella, 3.0))
    assert y.grad_fn is not before and y.grad_fn.name() == "MulBackward0"
    assert before in [node for node, _ in y.grad_fn.next_functions]


def test_a_view_follows_its_base():
    y = leaf(1.0, 2.0) * n(lamella, 1.0)
    view = y[0]
    assert view.grad_fn.name() == "SelectBackward0"
    y.mul_(n(lamella, 2.0))
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert y[0].requires_grad


def test_a_write_gives_a_plain_base_gradients():
    base = lamella.zeros(2, dtype=F64)
    view = base[0]
    view.add_(leaf(1.0)[0])
    assert base.requires_grad and not base.is_leaf
    assert base.grad_fn.name() == "CopySlices"
    assert view.requires_grad


def test_operators_without_gradients_end_the_history_of_what_they_write():
    for write in (
        lambda y: y.lt_(2.0),
        lambda y: y.eq_(y.detach().clone()),
        lambda y: y.logical_not_(),
        lambda y: y.logical_and_(y.detach()),
    ):
        x = leaf(1.0, 3.0)
        y = x * 1.0
        write(y)
        assert y.requires_grad
        y.sum().backward()
        assert x.grad is None
    x = leaf(1.0, 3.0)
    y = x * 2.0
    y[0].lt_(5.0)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0]
    with pytest.raises(RuntimeError) as error:
        x.lt_(2.0)
    assert str(error.value) == (
        "lt_: expected 'self' not to be a leaf that requires gradients, since it is written in "
        "place; write it under no_grad(), or write a copy"
    )


# ---- Counting of writes ----


def test_data_counts_writes_for_itself():
    """Writes through `x.data` do not concern backward, which uses the values that it finds."""

    def program(p, x):
        y = x * x
        x.data.clamp_(max=2.0)
        x.data.mul_(2.0)
        return y

    same_as_torch(program, (3,))


@pytest.mark.parametrize("package", ["lamella", "torch"])
def test_version_counters(package):
    p = pytest.importorskip(package)
    x = p.ones(4)
    start = x._version
    x.add_(1)
    data, again = x.data, x.data
    assert (data._version, again._version) == (0, 0)
    data.add_(1)
    data[1:].mul_(2)
    assert (x._version - start, data._version, data[0]._version, again._version) == (1, 2, 2, 0)
    # What shares the counter: views, detached aliases, parameters made of it.
    parameter = p.nn.Parameter(data.detach())
    parameter.detach().view(2, 2).zero_()
    assert data._version == parameter._version == 3
    assert x._version - start == 1 and x.tolist() == [0.0] * 4
    # A view counts apart from its base as well.
    row = x[:2].data
    row.add_(1)
    assert (x._version - start, row._version) == (1, 1)
    x.detach().add_(1)
    assert x._version - start == 2


MADE = [
    lambda p: p.randn(2),
    lambda p: p.ones(2).clone(),
    lambda p: p.full((2,), 3),
    lambda p: p.arange(3),
    lambda p: p.eye(3),
    lambda p: p.linspace(0, 1, 3),
    lambda p: p.randint(0, 5, (3,)),
    lambda p: p.randperm(4),
    lambda p: p.zeros_like(p.ones(2)),
    lambda p: p.ones(2).new_full((3,), 1),
    lambda p: p.tensor([1, 2]),
    lambda p: p.normal(p.ones(3), 1.0),
    lambda p: p.bernoulli(p.full((3,), 0.5)),
    lambda p: p.ones(2).to(p.float64),
    lambda p: p.ones(2, 3).t().contiguous(),
    lambda p: p.diag(p.ones(3)),
    lambda p: p.linalg.inv(p.eye(2)),
    lambda p: p.linalg.qr(p.eye(2))[0],
    lambda p: p.linalg.cholesky(p.eye(2)),
    lambda p: p.ones(3).masked_fill(p.ones(3) > 0, 1),
    lambda p: p.index_add(p.ones(3), 0, p.tensor([0]), p.ones(1)),
    lambda p: p.scatter(p.ones(3), 0, p.tensor([0]), 1.0),
    lambda p: p.index_copy(p.ones(3), 0, p.tensor([0]), p.ones(1)),
    lambda p: p.index_put(p.ones(3), [p.tensor([0])], p.ones(1)),
    lambda p: p.select_scatter(p.ones(3), p.tensor(1.0), 0, 0),
    lambda p: p.histc(p.ones(3)),
    lambda p: p.nn.functional.pad(p.ones(3), (1, 1)),
]
WRITTEN = [
    lambda p: p.ones(2).add_(1),
    lambda p: p.ones(3).index_put_([p.tensor([0])], p.ones(1)),
    lambda p: p.ones(3).index_add_(0, p.tensor([0]), p.ones(1)),
    lambda p: p.ones(3, 3).tril_(),
    lambda p: p.add(p.ones(2), 1, out=p.empty(2)),
    lambda p: p.eye(3, out=p.empty(3, 3)),
    lambda p: p.randn(3, out=p.empty(3)),
    lambda p: p.bernoulli(p.ones(3), out=p.empty(3)),
    lambda p: p.index_add(p.ones(3), 0, p.tensor([0]), p.ones(1), out=p.empty(3)),
    lambda p: p.linalg.inv(p.eye(2), out=p.empty(2, 2)),
    lambda p: p.stack([p.ones(2)], out=p.empty(1, 2)),
]


@pytest.mark.parametrize("package", ["lamella", "torch"])
def test_a_call_counts_as_one_write_and_what_it_makes_as_unwritten(package):
    p = pytest.importorskip(package)
    assert [make(p)._version for make in MADE] == [0] * len(MADE)
    assert [write(p)._version for write in WRITTEN] == [1] * len(WRITTEN)


@pytest.mark.parametrize("package", ["lamella", "torch"])
def test_a_tensor_that_is_given_memory_goes_on_counting(package):
    p = pytest.importorskip(package)
    x, t = p.ones(2), p.zeros(2)
    x.add_(1)
    t.add_(1).add_(1).add_(1)
    view = x[:1]
    before, others = x._version, t._version
    x.data = t
    assert x._version == before
    t.add_(1)
    assert (x._version - before, t._version - others) == (0, 1)
    x.add_(1)
    assert (x._version - before, t._version - others, x[0]._version - before) == (1, 1, 1)
    assert view.tolist() == [2.0]
    del x, t
    assert view.add_(1).tolist() == [3.0]


def test_data_may_be_given_between_forward_and_backward():
    x = leaf(1.0, 2.0)
    y = x * x
    x.data = lamella.tensor([5.0, 7.0], dtype=F64)
    y.backward(lamella.ones(2, dtype=F64))
    assert x.grad.tolist() == [10.0, 14.0]


def test_detached_aliases_of_data_are_seen():
    x = lamella.ones(2, dtype=F64).data.requires_grad_()
    y = x * x
    x.detach().zero_()
    with pytest.raises(RuntimeError) as error:
        y.backward(lamella.ones(2, dtype=F64))
    assert str(error.value) == (
        "MulBackward0: expected 'other' as it was when it was saved, at version 0, got version 1: "
        "it was written in place since; write a copy instead, or enable anomaly detection to see "
        "where it was used"
    )
    z = x * x
    x.data.data[0] = 3.0
    z.backward(lamella.ones(2, dtype=F64))
    assert x.grad.tolist() == [6.0, 0.0]


def test_counters_are_given_back():
    x = lamella.ones(2)
    for _ in range(1000):
        many = [x.data for _ in range(100)]
        many[50].add_(1)
        assert [each._version for each in many[49:52]] == [0, 1, 0]


def test_counters_on_threads():
    import threading

    x = lamella.ones(2)
    wrong = []

    def work():
        for i in range(2000):
            made = [x.data for _ in range(3)]
            for _ in range(i % 4):
                made[1][:1].add_(0)
            if [each._version for each in made] != [0, i % 4, 0]:
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_out_that_gradients_do_not_flow_through():
    x = leaf(1, 3, 2)
    out = lamella.empty(3, dtype=lamella.bool)
    assert lamella.eq(x, 3, out=out) is out and out.tolist() == [False, True, False]
    place = lamella.empty((), dtype=lamella.int64)
    assert lamella.argmax(x, out=place).item() == 1 and place.grad_fn is None
    with pytest.raises(RuntimeError) as caught:
        lamella.floor(x, out=lamella.empty(3, dtype=F64))
    assert str(caught.value) == (
        "floor: expected no argument to require gradients where the result is written to 'out', "
        "got 'self' that does; call it without 'out', or under no_grad()"
    )


def _exponentials(m, x):
    y = x * x
    y[1:].exp_()
    return y * y


def _rectified(m, x):
    y = x * x - 2
    m.relu_(y.view(1, 4)[:, 1:])
    return y * y * x


def _real_parts(m, x):
    y = m.complex(x, x * x)
    m.view_as_real(y)[..., 0].exp_()
    return (y * y.conj()).real


def _transposed(m, x):
    y = (x * x + 1).view(2, 2)
    y.t().sqrt_()
    return y**3


@pytest.mark.parametrize("program", [_exponentials, _rectified, _real_parts, _transposed])
def test_second_derivatives_of_writes_that_save_the_written_view(program):
    def penalty(m, x):
        (g,) = m.autograd.grad(program(m, x).sum(), [x], create_graph=True)
        return (g / 8) ** 2

    torch = pytest.importorskip("torch")
    found = []
    for package in (lamella, torch):
        x = package.arange(4.0, dtype=F64 if package is lamella else torch.float64) / 3 - 0.4
        x.requires_grad_()
        penalty(package, x).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("name", ["lamella", "torch"])
def test_replaced_memory_leaves_the_class_its_handler(name):
    library = pytest.importorskip(name)
    called = []

    class Counts(library.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            called.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    x = Counts(library.zeros(2))
    x.data = library.ones(2)
    assert x.data.tolist() == [1.0, 1.0] and type(x) is Counts
    x.set_(library.full((2,), 3.0))
    assert x.data.tolist() == [3.0, 3.0] and type(x) is Counts
    assert called.count("aten.detach.default") == 2 and "aten.set_.source_Tensor" in called
    y = library.zeros(2)
    y.data = x
    called.clear()
    assert (y + 1).tolist() == [4.0, 4.0] and type(y) is library.Tensor and not called


def test_wrappers_count_their_writes():
    class Counted(lamella.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if func.__name__.startswith("mul_"):
                return args[0]
            return lamella.Tensor._make_wrapper_subclass(cls, args[0].shape)

    x = lamella.Tensor._make_wrapper_subclass(Counted, (2,))
    x.detach().mul_(2)
    assert x._version == 1
    x.data.mul_(2)
    assert x._version == 1
    x.mul_(2)
    assert x._version == 2
