"""Rows of test_compile_reads.py: attributes of objects, classes, modules and functions."""

import dataclasses
import importlib
import math
import operator
import sys
import types

from compile_ways import TABLE, Box, Net, way

from lamella import nn

GLOBAL = 1.0


@way
def module_dict():
    net = Net(lambda self: self.cfg["scale"], cfg={"scale": 1.0})
    return net, lambda: net.cfg.update(scale=5.0)


@way
def module_nested_dict():
    net = Net(lambda self: self.cfg["a"]["b"][1], cfg={"a": {"b": [1.0, 2.0]}})
    return net, lambda: net.cfg["a"]["b"].__setitem__(1, 7.0)


@way
def module_list():
    net = Net(lambda self: sum(self.scales), scales=[1.0, 2.0])
    return net, lambda: net.scales.append(4.0)


@way
def module_list_item():
    net = Net(lambda self: self.scales[-1], scales=[1.0, 2.0])
    return net, lambda: net.scales.append(4.0)


@way
def module_set():
    net = Net(lambda self: 3.0 if "on" in self.flags else 1.0, flags=set())
    return net, lambda: net.flags.add("on")


class Slots:
    __slots__ = ("scale",)


@way
def module_slots():
    net = Net(lambda self: self.options.scale, options=Slots())
    net.options.scale = 1.0
    return net, lambda: setattr(net.options, "scale", 3.0)


@dataclasses.dataclass
class Options:
    scale: float = 1.0
    names: list = dataclasses.field(default_factory=list)


@way
def module_dataclass():
    net = Net(lambda self: self.options.scale, options=Options())
    return net, lambda: setattr(net.options, "scale", 3.0)


@way
def module_dataclass_list():
    net = Net(lambda self: len(self.options.names) + 1, options=Options())
    return net, lambda: net.options.names.append("x")


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: float = 1.0
    inner: dict = dataclasses.field(default_factory=lambda: {"k": 2.0})


@way
def frozen_dataclass():
    options = Frozen()
    return (lambda x: x * options.inner["k"]), lambda: options.inner.update(k=9.0)


@way
def dataclass_compared():
    a, b = Options(), Options()
    return (lambda x: x * (2.0 if a == b else 3.0)), lambda: b.names.append(1)


@way
def module_function():
    net = Net(lambda self: self.rule(2.0), rule=lambda v: v)
    return net, lambda: setattr(net, "rule", lambda v: v + 1)


@way
def module_replaced_method():
    net = nn.Linear(2, 2)
    return net, lambda: setattr(net, "forward", lambda x: x * 3)


@way
def class_attribute():
    class A:
        scale = 1.0

    a = A()
    return (lambda x: x * a.scale), lambda: setattr(A, "scale", 4.0)


@way
def class_attribute_of_base():
    class A:
        scale = 1.0

    class B(A):
        pass

    b = B()
    return (lambda x: x * b.scale), lambda: setattr(A, "scale", 4.0)


@way
def class_attribute_hidden_later():
    class A:
        scale = 1.0

    class B(A):
        pass

    b = B()
    return (lambda x: x * b.scale), lambda: setattr(B, "scale", 4.0)


@way
def class_attribute_hidden_in_the_instance():
    class A:
        scale = 1.0

    a = A()
    return (lambda x: x * a.scale), lambda: setattr(a, "scale", 4.0)


@way
def class_dict():
    class A(nn.Module):
        table = {"scale": 1.0}  # noqa: RUF012

        def forward(self, x):
            return x * self.table["scale"]

    return A(), lambda: A.table.update(scale=2.0)


@way
def class_of_the_object():
    class A:
        scale = 1.0

    class B:
        scale = 2.0

    a = A()
    return (lambda x: x * a.scale), lambda: setattr(a, "__class__", B)


@way
def bases_of_the_class():
    class A:
        scale = 1.0

    class B:
        scale = 2.0

    class C(A):
        pass

    c = C()
    return (lambda x: x * c.scale), lambda: setattr(C, "__bases__", (B,))


@way
def method_replaced_in_the_class():
    class A:
        def rule(self, x):
            return x

    a = A()
    return (lambda x: a.rule(x)), lambda: setattr(A, "rule", lambda self, x: x * 2)


@way
def method_replaced_in_the_object():
    class A:
        def rule(self, x):
            return x

    a = A()
    return (lambda x: a.rule(x)), lambda: setattr(a, "rule", lambda x: x * 2)


@way
def forward_replaced_in_the_class():
    class A(nn.Module):
        def forward(self, x):
            return x

    return A(), lambda: setattr(A, "forward", lambda self, x: x * 2)


@way
def call_of_a_callable():
    class A:
        def __call__(self, x):
            return x

    return A(), lambda: setattr(A, "__call__", lambda self, x: x * 2)


@way
def static_and_class_methods():
    class A:
        scale = 1.0

        @classmethod
        def rule(cls, x):
            return x * cls.scale

        @staticmethod
        def other(x):
            return x * TABLE["scale"]

    def change():
        A.scale, TABLE["scale"] = 3.0, 5.0

    return (lambda x: A.rule(x) + A.other(x)), change


@way
def python_module_attribute():
    module = types.ModuleType("settings")
    module.scale = 1.0
    return (lambda x: x * module.scale), lambda: setattr(module, "scale", 2.0)


@way
def python_module_imported_inside():
    module = types.ModuleType("settings_of_a_test")
    module.scale = 1.0
    sys.modules["settings_of_a_test"] = module

    def run(x):
        import settings_of_a_test

        return x * settings_of_a_test.scale

    return run, lambda: setattr(module, "scale", 2.0)


@way
def python_module_replaced():
    for_now, later = types.ModuleType("settings_of_two"), types.ModuleType("settings_of_two")
    for_now.scale, later.scale = 1.0, 2.0
    sys.modules["settings_of_two"] = for_now

    def run(x):
        from settings_of_two import scale

        return x * scale

    return run, lambda: sys.modules.update(settings_of_two=later)


@way
def python_module_imported_by_name():
    for_now, later = types.ModuleType("settings_by_name"), types.ModuleType("settings_by_name")
    for_now.scale, later.scale = 1.0, 2.0
    sys.modules["settings_by_name"] = for_now
    run = lambda x: x * importlib.import_module("settings_by_name").scale  # noqa: E731
    return run, lambda: sys.modules.update(settings_by_name=later)


@way
def arguments_of_an_exception():
    error = ValueError(1.0)
    return (lambda x: x * error.args[0]), lambda: setattr(error, "args", (2.0,))


@way
def name_of_a_class():
    class A:
        pass

    return (lambda x: x * len(A.__name__)), lambda: setattr(A, "__name__", "Longer")


@way
def python_module_getattr():
    module = types.ModuleType("lazy")
    values = {"scale": 1.0}
    module.__getattr__ = lambda name: values[name]
    return (lambda x: x * module.scale), lambda: values.update(scale=2.0)


@way
def function_of_a_library():
    before = math.sqrt

    def change():
        math.sqrt = lambda v: 7.0

    def undo():
        math.sqrt = before

    change.undo = undo
    return (lambda x: x * math.sqrt(4.0)), change


@way
def operator_replaced():
    before = nn.functional.relu

    def change():
        nn.functional.relu = lambda x: x * 5

    def undo():
        nn.functional.relu = before

    change.undo = undo
    return (lambda x: nn.functional.relu(x)), change


@way
def global_number():
    def change():
        global GLOBAL
        GLOBAL = 2.0

    return (lambda x: x * GLOBAL), change


@way
def global_nested():
    return (lambda x: x * TABLE["deep"]["list"][1]["x"]), lambda: TABLE["deep"]["list"][1].update(
        x=3.0
    )


@way
def global_that_hides_a_builtin():
    def change():
        globals()["abs"] = lambda v: 8.0

    change.undo = lambda: globals().pop("abs")
    return (lambda x: x * abs(-2.0)), change


@way
def closure_number():
    scale = 1.0

    def change():
        nonlocal scale
        scale = 2.0

    return (lambda x: x * scale), change


@way
def closure_of_an_inner_function():
    scale = [1.0]

    def inner(x):
        return x * scale[0]

    return (lambda x: [inner(y) for y in (x, x)][0]), lambda: scale.__setitem__(0, 3.0)


@way
def closure_contents_set():
    def make(scale):
        return lambda x: x * scale

    run = make(1.0)
    return run, lambda: setattr(run.__closure__[0], "cell_contents", 4.0)


@way
def default_argument():
    def run(x, by=1.0):
        return x * by

    return (lambda x: run(x)), lambda: setattr(run, "__defaults__", (2.0,))


@way
def default_of_a_keyword():
    def run(x, *, by=1.0):
        return x * by

    return (lambda x: run(x)), lambda: run.__kwdefaults__.update(by=2.0)


@way
def default_that_is_a_list():
    def run(x, by=[1.0]):  # noqa: B006
        return x * by[0]

    return run, lambda: run.__defaults__[0].__setitem__(0, 2.0)


@way
def code_of_a_function():
    def run(x):
        return x

    def other(x):
        return x * 2

    return (lambda x: run(x)), lambda: setattr(run, "__code__", other.__code__)


@way
def attribute_of_a_function():
    def run(x):
        return x * run.scale

    run.scale = 1.0
    return run, lambda: setattr(run, "scale", 2.0)


@way
def property_of_an_object():
    class A:
        def __init__(self):
            self._scale = 1.0

        @property
        def scale(self):
            return self._scale

    a = A()
    return (lambda x: x * a.scale), lambda: setattr(a, "_scale", 2.0)


@way
def property_replaced():
    class A:
        @property
        def scale(self):
            return 1.0

    a = A()
    return (lambda x: x * a.scale), lambda: setattr(A, "scale", property(lambda self: 2.0))


class Descriptor:
    def __init__(self):
        self.values = {}

    def __get__(self, instance, owner=None):
        return self.values.get("scale", 1.0)

    def __set__(self, instance, value):
        self.values["scale"] = value


@way
def descriptor_in_python():
    class A:
        scale = Descriptor()

    a = A()
    return (lambda x: x * a.scale), lambda: setattr(a, "scale", 2.0)


@way
def getattr_method():
    class A:
        def __init__(self):
            self.__dict__["table"] = {"scale": 1.0}

        def __getattr__(self, name):
            return self.table[name]

    a = A()
    return (lambda x: x * a.scale), lambda: a.table.update(scale=2.0)


@way
def getattribute_method():
    class A:
        def __getattribute__(self, name):
            return object.__getattribute__(self, "own_" + name)

    a = A()
    object.__setattr__(a, "own_scale", 1.0)
    return (lambda x: x * a.scale), lambda: object.__setattr__(a, "own_scale", 2.0)


@way
def getattr_appears():
    class A:
        pass

    a = A()
    run = lambda x: x * getattr(a, "scale", 1.0)  # noqa: E731
    return run, lambda: setattr(A, "__getattr__", lambda self, name: 6.0)


@way
def attribute_by_name():
    box = Box(scale=1.0, which="scale", other=4.0)
    return (lambda x: x * getattr(box, box.which)), lambda: setattr(box, "which", "other")


@way
def attribute_that_appears():
    box = Box()
    return (lambda x: x * 2 if hasattr(box, "twice") else x), lambda: setattr(box, "twice", True)


@way
def attribute_dictionary_replaced():
    box = Box(scale=1.0)
    return (lambda x: x * box.scale), lambda: setattr(box, "__dict__", {"scale": 2.0})


@way
def vars_of_an_object():
    box = Box(scale=1.0)
    return (lambda x: x * vars(box)["scale"]), lambda: setattr(box, "scale", 2.0)


@way
def attrgetter():
    box = Box(inner=Box(scale=1.0))
    get = operator.attrgetter("inner.scale")
    return (lambda x: x * get(box)), lambda: setattr(box.inner, "scale", 2.0)


@way
def attrgetter_as_a_key():
    boxes = [Box(at=2.0, by=3.0), Box(at=1.0, by=5.0)]
    run = lambda x: x * sorted(boxes, key=operator.attrgetter("at"))[0].by  # noqa: E731
    return run, lambda: setattr(boxes[0], "at", 0.0)


@way
def methodcaller():
    class A:
        def rule(self, by):
            return by

    a = A()
    call = operator.methodcaller("rule", by=2.0)
    return (lambda x: x * list(map(call, [a]))[0]), lambda: setattr(
        A, "rule", lambda self, by: by + 1
    )
