"""Calls of operators that the operator table does not cover, for test_vmap_rows.py."""

import lamella

aten = lamella.ops.aten


def values(*shape, low=-1.0, step=0.17):
    count = 1
    for size in shape:
        count *= size
    return (lamella.arange(count, dtype=lamella.float64) * step + 0.05 + low).reshape(shape)


def whole(numbers):
    return lamella.tensor(numbers)


def written(function, count=1):
    """For a function that writes its first arguments: the values written to copies of them."""

    def called(*args, **kwargs):
        copies = [copied(arg) for arg in args[:count]]
        function(*copies, *args[count:], **kwargs)
        return copies

    return called


def copied(value):
    return [item.clone() for item in value] if isinstance(value, list) else value.clone()


X = values(2, 3)
SQUARE = values(3, 3)
INDEX = whole([[0, 1, 0], [1, 0, 2]])
PLACES = whole([2, 0])
STEP = {"weight_decay": 0.1, "maximize": False}
SGD = {"momentum": 0.9, "dampening": 0.1, "nesterov": True, "is_first_step": False, **STEP}
ADAM = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": True, **STEP}
LISTS = [[X, X[0] * 2], [X * 0.5, X[0]], [X * 0.1, X[0] * 0.3]]
MOMENTS = [*LISTS, [X * X, X[0] * X[0]], [X * X * 2, X[0] * X[0] * 0.5]]
STEPS = [whole(3.0), whole(5.0)]
RATE = whole(0.05)


def optimizers():
    sgd = aten._fused_sgd_
    first = {"is_first_step": True}
    yield "_fused_sgd_", written(sgd.default, 3), LISTS, {**SGD, "lr": 0.1}
    yield "_fused_sgd_ first", written(sgd.default, 3), LISTS, {**SGD, "lr": 0.1, **first}
    yield "_fused_sgd_.tensor_lr", written(sgd.tensor_lr, 3), LISTS, {**SGD, "lr": RATE}
    for name in ("_fused_adam_", "_fused_adamw_"):
        adam = getattr(aten, name)
        lists = [*MOMENTS, STEPS]
        yield name, written(adam.default, 5), lists, {**ADAM, "lr": 0.1}
        yield f"{name}.tensor_lr", written(adam.tensor_lr, 5), lists, {**ADAM, "lr": RATE}


# Name, function, arguments.
TABLE = [
    ("bucketize.Scalar", lambda b: aten.bucketize(0.3, b), values(5)),
    ("searchsorted.Scalar", lambda s: aten.searchsorted(s, 0.3), values(5)),
    ("isin.Scalar_Tensor", lambda t: aten.isin(2, t), PLACES),
    ("isin.Tensor_Scalar", lambda t: aten.isin(t, 2), PLACES),
    ("copy", aten.copy, X, values(3)),
    ("fill.Tensor", aten.fill.Tensor, X, whole(0.5)),
    ("fill_.Tensor", written(aten.fill_.Tensor), X, whole(0.5)),
    ("detach_", lambda x: x.clone().detach_(), X),
    ("squeeze_.dim", lambda x: x.clone().unsqueeze_(1).squeeze_(1), X),
    ("as_strided_", lambda x: x.clone().as_strided_((3,), (1,)), X),
    ("resize_", lambda x: x.clone().resize_((3, 2)), X),
    ("view.dtype", lambda x: x.view(lamella.int64), X),
    ("alias", lambda x: aten.alias(x), X),
    ("lift", lambda x: aten.lift(x), X),
    ("lift_fresh", lambda x: aten.lift_fresh(x), X),
    ("_reshape_alias", lambda x: aten._reshape_alias(x, (3, 2), (2, 1)), X),
    ("_unsafe_index", lambda x, i: aten._unsafe_index.Tensor(x, [None, i]), X, PLACES),
    ("index.Tensor_out", lambda x, i: aten.index.Tensor_out(x, [i], out=x.new_empty((2, 3))), X,
     whole([1, 0])),
    ("index far apart", lambda x, i, j: x[:, i, :, j], values(2, 3, 2, 3), PLACES, PLACES),
    ("index in the middle", lambda x, i: x[:, i], values(2, 3, 2), whole([[2, 0], [1, 1]])),
    ("index by a mask", lambda x: x[lamella.tensor([True, False, True])], SQUARE),
    ("put in the middle", lambda x, i, v: x.index_put((None, i), v), values(2, 3, 2), PLACES,
     values(2, 2, 2)),
    ("put far apart", lambda x, i, v: x.index_put((i, None, i), v), values(3, 2, 3), PLACES,
     values(2, 2)),
    ("one value by a mask", lambda x, m: x.index_put((m,), lamella.tensor(2.0).to(x)), X,
     whole([True, False])),
    ("_index_put_impl_", written(lambda x, i, v: aten._index_put_impl_(x, [i], v)), X,
     whole([1, 0]), X * 2),
    ("index_fill_.int_Tensor", written(lambda x, i, v: x.index_fill_(1, i, v)), X, PLACES,
     whole(0.5)),
    ("index_fill_.int_Scalar", written(lambda x, i: x.index_fill_(1, i, 0.5)), X, PLACES),
    ("masked_fill_.Tensor", written(lambda x, m, v: x.masked_fill_(m, v)), X,
     whole([True, False, True]), whole(0.5)),
    ("scatter_.value", written(lambda x, i: x.scatter_(1, i, 0.5)), X, INDEX),
    ("norm.Scalar", lambda x: aten.norm.Scalar(x, 3), X),
    ("norm.ScalarOpt_dtype", lambda x: aten.norm.ScalarOpt_dtype(x, 3, dtype=lamella.float64),
     X.float()),
    ("norm.ScalarOpt_dim_dtype",
     lambda x: aten.norm.ScalarOpt_dim_dtype(x, 3, [0], False, dtype=lamella.float64), X.float()),
    ("count_nonzero.dim_IntList", lambda x: aten.count_nonzero.dim_IntList(x, [0, 1]), X),
    ("linspace.Tensor_Scalar",
     lambda x: aten.linspace.Tensor_Scalar(x, 2.0, 5, dtype=lamella.float64), whole(0.5)),
    ("_native_batch_norm_legit_no_training",
     lambda x, w, b, m, v: aten._native_batch_norm_legit_no_training(x, w, b, m, v, 0.1, 1e-05),
     values(2, 3, 4), values(3), values(3), values(3), values(3, low=1)),
    ("sum.IntList_out", lambda x: aten.sum.IntList_out(x, [1], out=x.new_empty(2)), X),
    ("mean.out", lambda x: aten.mean.out(x, [1], out=x.new_empty(2)), X),
    ("prod.int_out", lambda x: aten.prod.int_out(x, 1, out=x.new_empty(2)), X),
    ("_softmax.out", lambda x: aten._softmax.out(x, 1, False, out=x.new_empty(2, 3)), X),
    ("_log_softmax.out", lambda x: aten._log_softmax.out(x, 1, False, out=x.new_empty(2, 3)), X),
    ("sort.values_stable",
     lambda x: aten.sort.values_stable(x, stable=True, dim=0, values=x.new_empty(2, 3),
      indices=x.new_empty((2, 3), dtype=lamella.int64)), X),
    ("put.out", lambda x, i, s: aten.put.out(x, i, s, out=x.new_empty(2, 3)), X, whole([0, -1]),
     values(2)),
    ("diag_embed.out", lambda x: aten.diag_embed.out(x, out=x.new_empty(3, 3)), values(3)),
    ("constant_pad_nd.out",
     lambda x: aten.constant_pad_nd.out(x, [1, 2], 0.5, out=x.new_empty(2, 6)), X),
    ("as_strided_scatter.out",
     lambda x, s: aten.as_strided_scatter.out(x, s, (2,), (2,), out=x.new_empty(2, 3)), X,
     values(2)),
    ("reflection_pad3d", lambda x: aten.reflection_pad3d(x, [1, 0, 0, 1, 1, 1]),
     values(1, 2, 2, 2)),
    ("replication_pad3d", lambda x: aten.replication_pad3d(x, [1, 0, 0, 1, 1, 1]),
     values(2, 1, 2, 2, 2)),
    ("_scaled_dot_product_flash_attention_for_cpu",
     lambda q, k, v, m: aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=m),
     *(values(2, 2, 3, 4, low=at).float() for at in (-1, 0, 1)), values(3, 3).float()),
    ("_scaled_dot_product_flash_attention_for_cpu_backward",
     lambda g, q, k, v, m: aten._scaled_dot_product_flash_attention_for_cpu_backward(g, q, k,
      v, *aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=m), 0.0, False,
      attn_mask=m), *(values(2, 2, 3, 4, low=at).float() for at in (-2, -1, 0, 1)),
     values(3, 3).float()),
    ("embedding with padding", lambda w, i: aten.embedding(w, i, 1), SQUARE, INDEX),
    ("addmm broadcast", lambda b, x, y: aten.addmm(b, x, y, beta=0.5), values(3), X, SQUARE),
    ("linear", aten.linear, X, SQUARE, values(3)),
    ("linear on a vector", aten.linear, values(3), SQUARE, values(3)),
    ("channels_last", lambda x: aten.zeros_like(x, memory_format=lamella.channels_last),
     values(2, 3, 2, 2)),
    ("_foreach_norm.Scalar", aten._foreach_norm.Scalar, LISTS[0]),
    ("_foreach_sqrt", aten._foreach_sqrt, LISTS[0]),
]  # fmt: skip


def calls():
    """(name, function, arguments, keyword arguments)"""

    def case(name, function, *args, **kwargs):
        return name, function, list(args), kwargs

    for row in TABLE:
        yield case(*row)
    for how in ("add", "multiply"):
        yield case(
            "scatter.reduce",
            lambda x, i, s, how=how: x.scatter(1, i, s, reduce=how),
            X,
            INDEX,
            X * 2,
        )
        yield case(
            "scatter.value_reduce", lambda x, i, how=how: x.scatter(1, i, 0.5, reduce=how), X, INDEX
        )
        yield case(
            "scatter_.reduce",
            written(lambda x, i, s, how=how: x.scatter_(1, i, s, reduce=how)),
            X,
            INDEX,
            X * 2,
        )
    for name, more in (("trace.out", ()), ("tril.out", (3, 3)), ("roll.out", (3, 3))):
        given = (1,) if name == "roll.out" else ()
        yield case(
            name,
            lambda x, name=name, more=more, given=given: getattr(aten, name[:-4]).out(
                x, *given, out=x.new_empty(more)
            ),
            SQUARE,
        )
    for name, sizes in (("select_scatter", (3,)), ("diagonal_scatter", (2,))):
        more = (0, 1) if name == "select_scatter" else ()
        yield case(
            f"{name}.out",
            lambda x, s, name=name, more=more: getattr(aten, name).out(
                x, s, *more, out=x.new_empty(2, 3)
            ),
            X,
            values(*sizes),
        )
    for name, more, shape in (
        ("arange.start_out", (1, 4, 1), (3,)),
        ("range.out", (1, 4, 1), (4,)),
        ("linspace.out", (1, 4, 3), (3,)),
        ("logspace.out", (1, 4, 3), (3,)),
        ("eye.out", (3,), (3, 3)),
        ("eye.m_out", (3, 2), (3, 2)),
        ("zeros.out", ((3, 2),), (3, 2)),
        ("full.out", ((3, 2), 0.5), (3, 2)),
    ):
        base, overload = name.split(".")
        operator = getattr(getattr(aten, base), overload)
        yield case(
            name,
            lambda x, operator=operator, more=more, shape=shape: operator(
                *more, out=x.new_empty(shape)
            ),
            X,
        )
    for name, args, kwargs in (
        ("_foreach_add_.List", (LISTS[0], LISTS[1]), {"alpha": 2}),
        ("_foreach_mul_.Scalar", (LISTS[0], 2), {}),
        ("_foreach_maximum_.List", (LISTS[0], LISTS[1]), {}),
        ("_foreach_addcmul_.Scalar", LISTS, {}),
    ):
        base, overload = name.split(".")
        yield case(name, written(getattr(getattr(aten, base), overload)), *args, **kwargs)
    yield from optimizers()
