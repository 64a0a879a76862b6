"""Rows of test_compile_reads.py: evaluated text, memory, tensors, generators and training steps."""

import abc
import array
import collections
import contextlib
import contextvars
import copy
import ctypes
import decimal
import functools
import io
import math
import random
import sys
import threading
import weakref

import pytest
from compile_ways import Box, Net, way
from compile_ways_attributes import Slots

import lamella
from lamella import nn


@way
def text_of_eval():
    table = {"scale": 1.0}
    return (lambda x: x * eval("table['scale'] + by", {"table": table}, {"by": 1.0})), lambda: (
        table.update(scale=2.0)
    )


@way
def names_given_to_eval():
    names = {"scale": 1.0}
    return (lambda x: x * eval("scale", {}, names)), lambda: names.update(scale=2.0)


@way
def text_of_exec():
    table = {"scale": 1.0}

    def run(x):
        space = {"table": table}
        exec("def scale():\n    return table['scale']\nfound = scale()", space)
        return x * space["found"]

    return run, lambda: table.update(scale=2.0)


@way
def slot_that_is_set_later():
    options = Slots()
    return (lambda x: x * getattr(options, "scale", 1.0)), lambda: setattr(options, "scale", 2.0)


@way
def thread_local_that_is_set_later():
    local = threading.local()
    return (lambda x: x * getattr(local, "scale", 1.0)), lambda: setattr(local, "scale", 2.0)


@way
def context_variable_that_is_set_later():
    variable = contextvars.ContextVar("later")
    return (lambda x: x * variable.get(1.0)), lambda: variable.set(2.0)


@way
def sign_of_a_complex_zero():
    box = Box(value=complex(0.0, 0.0))
    run = lambda x: x * math.copysign(1.0, box.value.imag)  # noqa: E731
    return run, lambda: setattr(box, "value", complex(0.0, -0.0))


@way
def sign_of_a_zero():
    box = Box(value=0.0)
    return (lambda x: x / box.value), lambda: setattr(box, "value", -0.0)


@way
def kind_of_a_number():
    box = Box(value=1)
    return (lambda x: lamella.tensor([1, 2]) * box.value), lambda: setattr(box, "value", 1.0)


class Numbered(int):
    unit = 1.0


@way
def attribute_of_a_number():
    one, other = Numbered(2), Numbered(2)
    other.unit = 3.0
    box = Box(value=one)
    return (lambda x: x * box.value.unit), lambda: setattr(box, "value", other)


@way
def memory_of_ctypes():
    numbers = (ctypes.c_float * 2)(1.0, 2.0)
    return (lambda x: x * numbers[1]), lambda: numbers.__setitem__(1, 4.0)


@way
def field_of_ctypes():
    number = ctypes.c_float(1.0)
    return (lambda x: x * number.value), lambda: setattr(number, "value", 4.0)


@way
def memory_view():
    data = bytearray(b"\x01\x02")
    view = memoryview(data)
    return (lambda x: x * view[1]), lambda: data.__setitem__(1, 9)


@way
def array_of_python():
    numbers = array.array("d", [1.0, 2.0])
    return (lambda x: x * sum(numbers)), lambda: numbers.append(3.0)


@way
def text_in_memory():
    file = io.StringIO("12")
    return (lambda x: x * len(file.getvalue())), lambda: file.write("12345")


@way
def precision_of_decimal():
    def run(x):
        return x * float(decimal.Decimal(1) / decimal.Decimal(3))

    before = decimal.getcontext().prec
    change = lambda: setattr(decimal.getcontext(), "prec", 2)  # noqa: E731
    change.undo = lambda: setattr(decimal.getcontext(), "prec", before)
    return run, change


@way
def attribute_of_a_parameter():
    net = nn.Linear(2, 2)
    net.weight.scale = 1.0
    return (lambda x: net(x) * getattr(net.weight, "scale", 5.0)), lambda: (
        setattr(net.weight, "scale", 2.0)
    )


@way
def class_of_a_parameter():
    net = Net(lambda self: 2.0 if isinstance(self.weight, nn.Parameter) else 3.0)
    net.weight = nn.Parameter(lamella.ones(2))
    return net, lambda: net._parameters.update(weight=None)


@way
def tensors_that_are_the_same():
    box = Box(a=lamella.ones(2), b=lamella.ones(2))
    return (lambda x: x * 2 if box.a is box.b else x), lambda: setattr(box, "b", box.a)


@way
def dictionary_of_tensors():
    weight = lamella.ones(2)
    table = {weight: 2.0}
    return (lambda x: x * weight * table.get(weight, 1.0)), lambda: table.update({weight: 3.0})


@way
def dtype_of_autocast():
    def change():
        lamella.set_autocast_dtype("cpu", lamella.float16)

    change.undo = lambda: lamella.set_autocast_dtype("cpu", lamella.bfloat16)
    return (lambda x: x.to(lamella.get_autocast_dtype("cpu"))), change


@way
def autocast_is_on():
    cast = lamella.autocast("cpu", dtype=lamella.bfloat16)
    change = lambda: cast.__enter__()  # noqa: E731
    change.undo = lambda: cast.__exit__(None, None, None)
    return (lambda x: lamella.stack([x, x]) @ x), change


@way
def seed_of_the_generator():
    change = lambda: lamella.manual_seed(5)  # noqa: E731
    return (lambda x: x * (lamella.initial_seed() % 1000)), change


@way
def abstract_class_registered():
    class Base(abc.ABC):  # noqa: B024
        pass

    class A:
        pass

    a = A()
    return (lambda x: x * 2 if isinstance(a, Base) else x), lambda: Base.register(A)


@way
def single_dispatch():
    @functools.singledispatch
    def scale(value):
        return 1.0

    class A:
        pass

    a = A()
    return (lambda x: x * scale(a)), lambda: scale.register(A, lambda value: 2.0)


@way
def weak_dictionary():
    keys = [Box(), Box()]
    table = weakref.WeakKeyDictionary({keys[0]: 1.0})
    return (lambda x: x * table.get(keys[0], 5.0)), lambda: table.update({keys[0]: 3.0})


@way
def user_dictionary():
    table = collections.UserDict(scale=1.0)
    return (lambda x: x * table["scale"]), lambda: table.update(scale=2.0)


@way
def dictionary_with_a_default():
    class Table(dict):
        fallback = 1.0

        def __missing__(self, key):
            return self.fallback

    table = Table()
    return (lambda x: x * table["scale"]), lambda: setattr(Table, "fallback", 2.0)


@way
def metaclass_attribute():
    class Meta(type):
        scale = 1.0

        @property
        def twice(cls):
            return cls.scale * 2

    class A(metaclass=Meta):
        pass

    return (lambda x: x * A.twice), lambda: setattr(Meta, "scale", 3.0)


@way
def matched_pattern():
    if sys.version_info < (3, 10):
        pytest.skip("no match statement")
    space = {"box": {"kind": "a", "by": 2.0}}
    cases = "        case {'kind': 'a', 'by': by}: return x * by\n"
    text = f"def run(x):\n    match box:\n{cases}    return x"
    exec(text, space)
    return space["run"], lambda: space["box"].update(kind="b")


@way
def generator_function():
    table = {"scale": [1.0, 2.0]}

    def scales():
        yield from table["scale"]

    return (lambda x: x * sum(scales())), lambda: table["scale"].append(4.0)


@way
def context_manager():
    box = Box(scale=1.0)

    @contextlib.contextmanager
    def using():
        yield box.scale

    def run(x):
        with using() as scale:
            return x * scale

    return run, lambda: setattr(box, "scale", 2.0)


@way
def caught_exception():
    box = Box(table={})

    def run(x):
        try:
            return x * box.table["scale"]
        except KeyError:
            return x

    return run, lambda: box.table.update(scale=2.0)


@way
def formatted_text():
    box = Box(table={"k": 12})
    return (lambda x: x * len(f"{box.table['k']}")), lambda: box.table.update(k=12345)


@way
def copied_object():
    box = Box(table={"k": [1.0]})
    return (lambda x: x * copy.deepcopy(box).table["k"][0]), lambda: (
        box.table["k"].__setitem__(0, 3.0)
    )


@way
def defaults_of_a_library_function():
    softmax = nn.functional.leaky_relu
    before = softmax.__defaults__
    change = lambda: setattr(softmax, "__defaults__", (0.5, *before[1:]))  # noqa: E731
    change.undo = lambda: setattr(softmax, "__defaults__", before)
    return (lambda x: nn.functional.leaky_relu(-x)), change


@way
def iterator_from_outside():
    numbers = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    eager = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])

    def run(x):
        return x * next(numbers)

    run.eager = lambda x: x * next(eager)
    return run, lambda: None


@way
def random_numbers_of_python():
    mine, theirs = random.Random(1), random.Random(1)
    run = lambda x: x * mine.random()  # noqa: E731
    eager = lambda x: x * theirs.random()  # noqa: E731
    return (Box(run=run, eager=eager)), lambda: None


@way
def options_of_a_step():
    """A training step that reads its weight from a dictionary: nothing moves at weight 0."""

    class Step:
        def __init__(self):
            self.net = nn.Linear(2, 1)
            nn.init.ones_(self.net.weight)
            nn.init.zeros_(self.net.bias)
            self.optimizer = lamella.optim.SGD(self.net.parameters(), lr=0.25)
            self.options = {"weight": 1.0}

        def __call__(self, x):
            self.optimizer.zero_grad()
            (self.net(x).sum() * self.options["weight"]).backward()
            self.optimizer.step()
            return self.net.weight.detach().clone()

    steps = [Step(), Step()]
    run = Box(run=steps[0], eager=steps[1])
    return run, lambda: [step.options.update(weight=0.0) for step in steps]


@way
def options_of_an_optimizer():
    nets = [nn.Linear(2, 1), nn.Linear(2, 1)]
    nets[1].load_state_dict(nets[0].state_dict())
    optimizers = [lamella.optim.SGD(net.parameters(), lr=0.25, momentum=0.5) for net in nets]

    def make(net, optimizer):
        def step(x):
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
            return net.weight.detach().clone()

        return step

    def change():
        for optimizer in optimizers:
            optimizer.param_groups[0]["momentum"] = 0.25

    steps = [make(*pair) for pair in zip(nets, optimizers)]
    return Box(run=steps[0], eager=steps[1]), change
