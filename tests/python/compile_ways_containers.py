"""Rows of test_compile_reads.py: modes, layers, containers, environments and calls."""

import collections
import contextvars
import enum
import functools
import operator
import os
import threading
import types
import weakref

import pytest
from compile_ways import TABLE, Box, Net, multiply, way

import lamella
from lamella import nn


@way
def default_dtype():
    def change():
        lamella.set_default_dtype(lamella.float64)

    change.undo = lambda: lamella.set_default_dtype(lamella.float32)
    return (lambda x: lamella.ones(2) * x.sum()), change


@way
def grad_mode():
    weight = lamella.ones(2, requires_grad=True)
    change = lambda: lamella.set_grad_enabled(False)  # noqa: E731
    change.undo = lambda: lamella.set_grad_enabled(True)
    return (lambda x: (x * weight, lamella.is_grad_enabled())), change


@way
def layer_appended():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    return net, lambda: net.append(nn.Linear(2, 3))


@way
def layer_in_a_list():
    net = Net(
        lambda self: sum(layer.in_features for layer in self.layers),
        layers=nn.ModuleList([nn.Linear(2, 2)]),
    )
    return net, lambda: net.layers.append(nn.Linear(3, 3))


@way
def hook_registered():
    net = nn.Linear(2, 2)
    return net, lambda: net.register_forward_hook(lambda module, args, out: out * 2)


@way
def inner_hook_registered():
    net = nn.Sequential(nn.Linear(2, 2))
    return net, lambda: net[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))


@way
def buffer_becomes_none():
    net = Net(lambda self: 1.0 if self.extra is None else 3.0)
    net.register_buffer("extra", None)
    return net, lambda: setattr(net, "extra", lamella.ones(1))


@way
def dict_order():
    table = {"a": 1.0, "b": 2.0}

    def run(x):
        for value in table.values():
            x = x * 10 + value
        return x

    return run, lambda: table.update(a=table.pop("a"))


@way
def dict_iterated_keys():
    table = {"a": 1.0}
    return (lambda x: x * len([key for key in table])), lambda: table.update(b=1.0)


@way
def dict_get_default():
    table = {}
    return (lambda x: x * table.get("scale", 1.0)), lambda: table.update(scale=2.0)


@way
def dict_subclasses():
    counted, ordered = collections.defaultdict(int, a=1), collections.OrderedDict(a=1.0, b=2.0)
    run = lambda x: x * counted["a"] + next(iter(ordered.values()))  # noqa: E731
    return run, lambda: ordered.move_to_end("a")


@way
def chain_of_maps():
    low = {"scale": 1.0}
    chain = collections.ChainMap({}, low)
    return (lambda x: x * chain["scale"]), lambda: chain.maps[0].update(scale=2.0)


@way
def deque():
    queue = collections.deque([1.0, 2.0])
    return (lambda x: x * queue[0]), lambda: queue.appendleft(3.0)


@way
def bytes_that_change():
    data = bytearray(b"\x01\x02")
    return (lambda x: x * data[1]), lambda: data.__setitem__(1, 9)


@way
def array_of_numpy():
    numpy = pytest.importorskip("numpy")
    data = numpy.ones(2, numpy.float32)
    return (lambda x: x * lamella.tensor(data)), lambda: data.__setitem__(0, 4.0)


@way
def tuple_of_lists():
    pair = ([1.0], {"a": 2.0})
    return (lambda x: x * pair[0][0] + pair[1]["a"]), lambda: pair[0].__setitem__(0, 3.0)


@way
def unpacked():
    pair = [1.0, 2.0]

    def run(x):
        a, b = pair
        return x * a + b

    return run, lambda: pair.__setitem__(1, 5.0)


@way
def starred():
    more, named = [2.0], {"by": 3.0}
    return (lambda x: multiply(x, *more) + multiply(x, **named)), lambda: named.update(by=4.0)


@way
def lists_in_a_map():
    rows = [[1.0, 2.0], [3.0]]
    return (lambda x: x * sum(map(len, rows)) + max(map(sum, rows))), lambda: rows[1].append(4.0)


@way
def attribute_through_a_method():
    class A:
        def rule(self):
            return 1.0

    A.rule.scale = 1.0
    a = A()
    return (lambda x: x * a.rule.scale), lambda: setattr(A.rule, "scale", 2.0)


@way
def weak_proxy():
    box = Box(scale=1.0)
    proxies = [weakref.proxy(box), box]
    return (lambda x: x * proxies[0].scale), lambda: setattr(box, "scale", 2.0)


@way
def in_a_comprehension():
    boxes = [Box(by=1.0), Box(by=2.0)]
    return (lambda x: sum(x * box.by for box in boxes)), lambda: setattr(boxes[1], "by", 7.0)


@way
def through_map_and_reduce():
    boxes = [Box(by=1.0), Box(by=2.0)]
    run = lambda x: functools.reduce(operator.mul, map(lambda b: b.by, boxes), x)  # noqa: E731
    return run, lambda: setattr(boxes[1], "by", 7.0)


@way
def environment():
    os.environ["LAMELLA_TEST_SCALE"] = "1"
    return (lambda x: x * int(os.environ["LAMELLA_TEST_SCALE"])), lambda: os.environ.update(
        LAMELLA_TEST_SCALE="2"
    )


@way
def environment_that_is_not_set():
    os.environ.pop("LAMELLA_TEST_NONE", None)
    run = lambda x: x * int(os.getenv("LAMELLA_TEST_NONE", "1"))  # noqa: E731
    return run, lambda: os.environ.update(LAMELLA_TEST_NONE="2")


@way
def context_variable():
    variable = contextvars.ContextVar("scale", default=1.0)
    return (lambda x: x * variable.get()), lambda: variable.set(2.0)


@way
def thread_local():
    local = threading.local()
    local.scale = 1.0
    return (lambda x: x * local.scale), lambda: setattr(local, "scale", 2.0)


@way
def weak_reference():
    box = Box(scale=1.0)
    boxes = [box]
    ref = weakref.ref(box)
    del box
    return (lambda x: x * ref().scale if ref() else x * 9), boxes.clear


@way
def partial():
    run = functools.partial(multiply, by=1.0)
    return run, lambda: run.keywords.update(by=2.0)


@way
def partial_of_an_object():
    box = Box(scale=1.0)
    return functools.partial(lambda box, x: x * box.scale, box), lambda: setattr(box, "scale", 2.0)


@way
def bound_method():
    class A:
        scale = 1.0

        def rule(self, x):
            return x * self.scale

    a = A()
    return a.rule, lambda: setattr(a, "scale", 2.0)


@way
def super_call():
    class A:
        def rule(self, x):
            return x

    class B(A):
        def rule(self, x):
            return super().rule(x) * 2

    b = B()
    return (lambda x: b.rule(x)), lambda: setattr(A, "rule", lambda self, x: x * 10)


@way
def operators_of_a_class():
    class A:
        def __bool__(self):
            return True

    a = A()
    return (lambda x: x * 2 if a else x), lambda: setattr(A, "__bool__", lambda self: False)


@way
def truth_appears():
    class A:
        pass

    a = A()
    return (lambda x: x * 2 if a else x), lambda: setattr(A, "__len__", lambda self: 0)


@way
def named_in_an_enum():
    class Kind(enum.Enum):
        A = "a"
        B = "b"

    table = {Kind.A: 1.0, Kind.B: 2.0}
    return (lambda x: x * table[Kind.A] + table[Kind("b")]), lambda: table.__setitem__(Kind.A, 3.0)


@way
def cached_function():
    @functools.lru_cache
    def scale(name):
        return TABLE[name]

    def change():
        TABLE["scale"] += 1.0
        scale.cache_clear()

    return (lambda x: x * scale("scale")), change


@way
def cached_property():
    class A:
        @functools.cached_property
        def scale(self):
            return 2.0

    a = A()
    return (lambda x: x * a.scale), lambda: a.__dict__.update(scale=3.0)


@way
def simple_namespace():
    space = types.SimpleNamespace(inner=types.SimpleNamespace(scale=1.0))
    return (lambda x: x * space.inner.scale), lambda: setattr(space.inner, "scale", 2.0)


@way
def mapping_proxy():
    table = {"scale": 1.0}
    proxy = types.MappingProxyType(table)
    return (lambda x: x * proxy["scale"]), lambda: table.update(scale=2.0)


@way
def names_of_a_class():
    class A:
        scale = 1.0

    return (lambda x: x * vars(A)["scale"]), lambda: setattr(A, "scale", 2.0)


@way
def tensor_in_a_tuple():
    pair = [(lamella.ones(2), 1)]
    return (lambda x: x * pair[0][0]), lambda: pair.__setitem__(0, (lamella.full((2,), 3.0), 1))


@way
def tensor_that_is_written():
    pair = (lamella.ones(2), 1)
    return (lambda x: x * pair[0]), lambda: pair[0].fill_(4.0)


@way
def shape_of_a_tensor():
    box = Box(weight=lamella.ones(2, 3))
    return (lambda x: x * box.weight.shape[1]), lambda: setattr(box, "weight", lamella.ones(2, 4))


@way
def attribute_of_a_tensor():
    weight = lamella.ones(2)
    weight.scale = 1.0
    pair = (weight,)
    return (lambda x: x * pair[0].scale), lambda: setattr(weight, "scale", 2.0)


@way
def requires_grad_of_a_tensor():
    weight = lamella.ones(2)
    return (lambda x: x * 2 if weight.requires_grad else x), lambda: weight.requires_grad_()


@way
def gradient_of_the_backward():
    scale = [1.0]

    class Scaled(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            return grad * scale[0]

    def run(x):
        return Scaled.apply(x)

    def graded(f):
        def call(x):
            x = x.detach().requires_grad_()
            f(x).sum().backward()
            return x.grad

        return call

    run.graded = graded
    return run, lambda: scale.__setitem__(0, 5.0)
