"""vmap within gradients and gradients within vmap, against torch.func."""

import pytest
from vmap_testing import arrays, close, same

import lamella
from lamella import nn

torch = pytest.importorskip("torch")

X, W = arrays((3, 4), (4,))


def sine(w, x):
    return (w * x).sin()


def norm(f, v, w):
    functional = (lamella if f is lamella.func else torch).nn.functional
    return functional.layer_norm(v, (4,), w)


PROGRAMS = {
    "gradient of what is shared": lambda f, x, w: f.vmap(
        f.grad(lambda w, x: sine(w, x).sum()), in_dims=(None, 0)
    )(w, x),
    "both gradients": lambda f, x, w: f.vmap(
        f.grad(lambda w, x: sine(w, x).sum(), argnums=(0, 1)), in_dims=(None, 0)
    )(w, x),
    "grad over vmap": lambda f, x, w: f.grad(
        lambda w: f.vmap(lambda x: (w * x).exp().sum())(x).sum()
    )(w),
    "grad over vmap over grad": lambda f, x, w: f.grad(
        lambda w: f.vmap(f.grad(lambda x: (w * x).exp().sum()))(x).sum()
    )(w),
    "vmap over vmap over grad": lambda f, x, w: f.vmap(
        lambda a: f.vmap(f.grad(lambda b: (a * b * w).sin().sum()))(x)
    )(x),
    "vjp in vmap": lambda f, x, w: f.vmap(lambda t: f.vjp(lambda v: sine(v, w), w)[1](t)[0])(x),
    "vmap of a vjp": lambda f, x, w: f.vmap(f.vjp(lambda v: sine(v, x), w)[1])(x[:, None, :] * x),
    "jvp in vmap": lambda f, x, w: f.vmap(lambda x, t: f.jvp(lambda v: sine(v, w), (x,), (t,)))(
        x, x * 2
    ),
    "jvp of what is shared": lambda f, x, w: f.vmap(
        lambda t: f.jvp(lambda v: sine(v, w), (w,), (t,))
    )(x),
    "jvp beside a batched tensor": lambda f, x, w: f.vmap(
        lambda t, y: f.jvp(lambda v: sine(v, y), (w,), (t,))
    )(x, x * 3),
    "jvp over vmap": lambda f, x, w: f.jvp(
        lambda w: f.vmap(lambda x: sine(w, x))(x), (w,), (w * 2,)
    ),
    "jvp over vmap over grad": lambda f, x, w: f.jvp(
        lambda w: f.vmap(f.grad(lambda x: sine(w, x).sum()))(x), (w,), (w * 2,)
    ),
    "vmap over jvp over grad": lambda f, x, w: f.vmap(
        lambda x, t: f.jvp(f.grad(lambda v: sine(v, w).sum()), (x,), (t,))
    )(x, x * 2),
    "jacrev": lambda f, x, w: f.jacrev(lambda w: sine(w, x))(w),
    "jacfwd": lambda f, x, w: f.jacfwd(lambda w: sine(w, x))(w),
    "jacrev in chunks": lambda f, x, w: f.jacrev(lambda w: sine(w, x), chunk_size=5)(w),
    "jacrev of several": lambda f, x, w: f.jacrev(
        lambda a, b: {"u": a * b, "v": [a.sum(), b]}, argnums=(0, 1)
    )(x[0], w),
    "jacfwd of several": lambda f, x, w: f.jacfwd(
        lambda a, b: {"u": a * b, "v": [a.sum(), b * b]}, argnums=(0, 1)
    )(x[0], w),
    "jacrev of a nest": lambda f, x, w: f.jacrev(lambda d: d["a"] * d["b"][0])({"a": x, "b": [w]}),
    "jacfwd of a nest": lambda f, x, w: f.jacfwd(lambda d: d["a"] * d["b"][0])({"a": x, "b": [w]}),
    "jacrev with aux": lambda f, x, w: f.jacrev(lambda w: (w.sin(), w.sum()), has_aux=True)(w),
    "jacfwd with aux": lambda f, x, w: f.jacfwd(lambda w: (w.sin(), w.sum()), has_aux=True)(w),
    "hessian": lambda f, x, w: f.hessian(lambda w: (w * w * w).sin().sum())(w),
    "hessian of two": lambda f, x, w: f.hessian(
        lambda a, b: (a * a * b).sin().sum(), argnums=(0, 1)
    )(x[0], w),
    "hessian of a softmax": lambda f, x, w: f.hessian(lambda v: ((v * w).softmax(0) * w).sum())(
        x[0]
    ),
    "hessian of a layer norm": lambda f, x, w: f.hessian(lambda v: (norm(f, v, w) ** 3).sum())(
        x[0]
    ),
    "hessians of layer norms": lambda f, x, w: f.vmap(
        f.hessian(lambda v: (norm(f, v, w) ** 3).sum())
    )(x),
    "jacrev twice of a layer norm": lambda f, x, w: f.vmap(
        f.jacrev(f.jacrev(lambda v: (norm(f, v, w) ** 3).sum()))
    )(x),
    "jacrev twice": lambda f, x, w: f.jacrev(f.jacrev(lambda w: (w * w * w).sin().sum()))(w),
    "jacfwd twice": lambda f, x, w: f.jacfwd(f.jacfwd(lambda w: (w * w * w).sin().sum()))(w),
    "jacrev over jacfwd": lambda f, x, w: f.jacrev(f.jacfwd(lambda w: (w * w * w).sin().sum()))(w),
    "hessians of examples": lambda f, x, w: f.vmap(
        f.hessian(lambda v: (v * v * v * w).sin().sum())
    )(x),
    "jacrev of examples": lambda f, x, w: f.vmap(f.jacrev(lambda v: (v * v * w).sin()))(x),
    "jacfwd of examples": lambda f, x, w: f.vmap(f.jacfwd(lambda v: (v * v * w).sin()))(x),
    "indexing": lambda f, x, w: f.vmap(f.grad(lambda v: (v[1:] * v[:-1]).sum() + v[0] ** 3))(x),
    "writing": lambda f, x, w: f.vmap(f.grad(lambda v: written(v, w).sum()))(x),
}


def written(v, w):
    y = v * 1
    y[1:].mul_(w[1:])
    y += v
    return y.sin()


@pytest.mark.parametrize("name", PROGRAMS)
def test_transforms(name):
    if name == "writing":  # an unbatched tensor never takes a gradient of each example
        close(
            lamella.vmap(lamella.func.grad(lambda v: written(v, lamella.from_numpy(W)).sum()))(
                lamella.from_numpy(X)
            ),
            torch.stack(
                [
                    torch.func.grad(lambda v: written(v, torch.from_numpy(W)).sum())(row)
                    for row in torch.from_numpy(X)
                ]
            ),
        )
        return
    same(lambda m, x, w: PROGRAMS[name](m.func, x, w), X, W)


def test_results_are_free_of_the_graph():
    x, w = lamella.from_numpy(X[0].copy()), lamella.from_numpy(W)
    mixed = lamella.func.jacrev(lamella.func.jacrev(lambda v, w: sine(w, v * w).sum(), argnums=1))
    assert not mixed(x, w).requires_grad
    assert mixed(x.requires_grad_(), w).requires_grad  # required by x


def test_gradients_of_each_example():
    def program(m, x, w):
        labels = m.tensor([0, 1, 2])

        def loss(w, x, label):
            return m.nn.functional.cross_entropy((w * x)[None], label[None])

        return m.func.vmap(m.func.grad(loss), in_dims=(None, 0, 0))(w, x, labels)

    same(program, X, W)


def test_an_ensemble():
    def program(m, x, w):
        models = [m.nn.Linear(4, 2, dtype=m.float64) for _ in range(3)]
        for k, model in enumerate(models):
            with m.no_grad():
                model.weight.copy_(m.stack([w, w + k]))
                model.bias.fill_(k)
        state = m.func.stack_module_state(models)

        def call(p, b, x):
            return m.func.functional_call(models[0], (p, b), (x,))

        one = m.func.vmap(call, in_dims=(0, 0, None))(*state, x)
        return one, m.func.vmap(call, in_dims=(0, 0, 0))(*state, x), state[0]

    same(program, X, W)


def test_stack_module_state_checks_its_modules():
    with pytest.raises(RuntimeError) as error:
        lamella.func.stack_module_state([])
    assert str(error.value) == "stack_module_state: expected at least one module, got none"
    with pytest.raises(RuntimeError) as error:
        lamella.func.stack_module_state([nn.Linear(2, 2), nn.ReLU()])
    assert str(error.value) == (
        "stack_module_state: expected modules of one class, Linear, got ReLU at 1"
    )


def test_gradients_of_a_batch_of_cotangents():
    def program(m, x, w):
        leaf, other = w.clone().requires_grad_(), w.clone().requires_grad_()
        y = (leaf * leaf).sin()
        found = m.autograd.grad(y, (leaf, other), x, is_grads_batched=True, allow_unused=True)
        again = m.autograd.grad(
            (leaf * leaf).sin(), leaf, x, is_grads_batched=True, create_graph=True
        )[0]
        return found, m.autograd.grad(again.sum(), leaf)

    same(program, X, W)


def test_jacfwd_in_chunks():
    w, x = lamella.from_numpy(W), lamella.from_numpy(X)
    found = lamella.func.jacfwd(lambda w: sine(w, x), chunk_size=3)(w)
    close(found, torch.func.jacfwd(lambda w: sine(w, torch.from_numpy(X)))(torch.from_numpy(W)))


# ---- autograd itself, inside of vmap


def inside(function):
    return lamella.vmap(function)(lamella.from_numpy(X))


def test_grad_and_backward_inside():
    wanted = torch.from_numpy(2 * X)

    def by_grad(a):
        a = a.clone().requires_grad_()
        return lamella.autograd.grad((a * a).sum(), a)[0]

    def by_backward(a):
        a = a.clone().requires_grad_()
        assert a.is_leaf and a.grad is None and a.grad_fn is None
        (a * a).sum().backward()
        return a.grad

    close(inside(by_grad), wanted)
    close(inside(by_backward), wanted)


def test_attributes_and_hooks_inside():
    def look(a):
        assert not a.requires_grad
        a = a.clone().requires_grad_()
        b = a * a
        assert b.requires_grad and not b.is_leaf and b.grad_fn.name() == "MulBackward0"
        b.register_hook(lambda g: g * 3)
        handle = b.register_hook(lambda g: g * 100)
        handle.remove()
        b.retain_grad()
        b.sum().backward()
        assert b.grad.shape == (4,) and not b.detach().requires_grad
        a.grad = a.grad * 2
        return a.grad

    close(inside(look), torch.from_numpy(12 * X))


def test_gradients_of_a_leaf_outside():
    w = lamella.from_numpy(W.copy()).requires_grad_()
    with pytest.raises(RuntimeError) as error:
        lamella.vmap(lambda v: [(w * w).backward(v, retain_graph=True), v][1])(
            lamella.from_numpy(X)
        )
    assert str(error.value) == (
        "backward: expected gradients that are not batched for the grad of a leaf that is not, as "
        "its grad would have to hold one for each example of vmap; use autograd.grad() in vmap, or "
        "call backward() outside of it"
    )


def test_a_dual_tensor_inside():
    from lamella.autograd import forward_ad

    def push(a, t):
        dual = forward_ad.make_dual(a, t)
        return forward_ad.unpack_dual(dual.sin() * dual)

    x = lamella.from_numpy(X)
    with forward_ad.dual_level():
        primal, tangent = lamella.vmap(push)(x, x * 2)
    point = torch.from_numpy(X)
    wanted = torch.func.jvp(lambda v: v.sin() * v, (point,), (point * 2,))
    close((primal, tangent), wanted)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: lamella.conv2d(x, lamella.ones(4, 3, 2, 2)), (2, 3, 5, 5)),
        (lambda x: lamella.nn.functional.conv_transpose1d(x, lamella.ones(3, 2, 2)), (1, 3, 5)),
        (lambda x: lamella.nn.functional.max_pool2d(x, 2), (2, 3, 4, 4)),
        (lambda x: lamella.nn.functional.adaptive_avg_pool2d(x, 2), (2, 3, 4, 4)),
        (lambda x: lamella.nn.functional.avg_pool1d(x, 2), (2, 3, 4)),
        (lambda x: lamella.nn.functional.batch_norm(x, None, None, training=True), (2, 3, 4)),
        (lambda x: lamella.nn.functional.group_norm(x, 3), (2, 3, 4)),
        (lambda x: lamella.nn.functional.local_response_norm(x, 3), (2, 3, 4)),
        (lambda x: lamella.nn.functional.pixel_shuffle(x, 2), (2, 4, 3, 3)),
        (lambda x: lamella.nn.functional.interpolate(x, scale_factor=2), (2, 4, 3)),
        (lambda x: lamella.nn.functional.scaled_dot_product_attention(x, x, x), (2, 2, 4, 3)),
    ],
)
@pytest.mark.parametrize("place", [0, -1])
def test_batches_of_no_examples_keep_the_shape_of_an_example(function, shape, place):
    wanted = tuple(function(lamella.ones(*shape)).shape)
    batch = lamella.ones(0, *shape).movedim(0, place)
    assert tuple(lamella.vmap(function, in_dims=place)(batch).shape) == (0, *wanted)
