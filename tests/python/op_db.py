"""Lamella beside PyTorch on the samples of op_db, PyTorch's own table of operators.

An entry of the table has a function of PyTorch's, often a lambda or a small wrapper. `ours` makes
the same function over Lamella: names are looked up by their path, Python functions of PyTorch's
test files are made again with `torch` standing for `lamella`. `Entry.failures` then runs both on
the entry's samples and says, check by check, what differs:

    forward   values, shapes and dtypes of the results
    grad      which results require gradients, and the gradients of the inputs
    gradgrad  second derivatives
    jvp       tangents of the results in forward mode
    inplace   the in-place form: values and gradients
    out       `out=` with inputs that require gradients raises

Entries that Lamella does not have stand in op_db_absent.txt, checks that differ in
op_db_differs.txt, each with the reason. Both lists can only shrink: an entry that is there without
need fails the test too. LAMELLA_OP_DB=all takes all samples in place of a few, and
LAMELLA_OP_DB=shrink takes lines away that are not needed any more.

By hand: `python tests/python/op_db.py [ENTRY ...]` prints what differs now, and with
`--write-lists` writes both lists anew, for whoever adds operators that cannot agree yet.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import types
import warnings
from pathlib import Path

import torch

import lamella

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_methods_invocations as invocations
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core as opinfo_core

TABLE = invocations.op_db
SEEDED = invocations.wrapper_set_seed  # what entries call that draw random numbers

# Looks through the whole stack for a test case of unittest's, for each sample.
opinfo_core.extract_test_fn = common_utils.extract_test_fn = lambda: None

HERE = Path(__file__).resolve().parent
MODE = os.environ.get("LAMELLA_OP_DB", "")
CHECKS = ("forward", "grad", "gradgrad", "jvp", "inplace", "out")

# Samples taken of each dtype, spread over those that an entry has.
COUNTS = {torch.float64: 3, torch.complex128: 2, torch.float32: 1, torch.int64: 1, torch.bool: 1}
GENERATED = 16
LARGEST = 20_000  # elements of all tensors of a sample

# (relative, absolute)
TOLERANCE = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (1e-4, 1e-4),
    torch.complex64: (1e-4, 1e-4),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (2e-2, 2e-2),
}

# Results are memory as it was found.
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}

compared = {"entries": 0, "samples": 0, "gradients": 0}


class Absent(Exception):
    """Lamella has nothing of this name."""


# ---- PyTorch's functions, over Lamella -------------------------------------------------------------


def _paths():
    """From PyTorch's functions to where they are found: ("nn.functional", "relu")."""
    found = {}
    places = ["Tensor", "special", "linalg", "fft", "nn.functional", ""]
    for place in places:  # later ones win
        owner = functools.reduce(getattr, place.split("."), torch) if place else torch
        for name in dir(owner):
            with contextlib.suppress(Exception):
                value = getattr(owner, name)
                if callable(value) and not isinstance(value, type):
                    found[id(value)] = (place, name)
    return found


PATHS = _paths()


def resolve(place, name):
    owner = lamella
    for part in [*filter(None, place.split(".")), name]:
        try:
            owner = getattr(owner, part)
        except (AttributeError, ImportError):
            path = f"{place}.{name}" if place else name
            raise Absent(f"lamella.{path}") from None
    return owner


class Mirror:
    """A module of PyTorch's, as Lamella has it."""

    def __init__(self, place):
        self._place = place

    def __getattr__(self, name):
        path = f"{self._place}.{name}" if self._place else name
        theirs = functools.reduce(getattr, path.split("."), torch)
        if isinstance(theirs, types.ModuleType) and hasattr(theirs, "__path__"):
            return Mirror(path)
        if path in ("nn.functional", "linalg", "special", "fft", "ops", "ops.aten"):
            return Mirror(path)
        if path in ("Tensor", "float32") or isinstance(theirs, torch.dtype):
            return resolve("", name)
        return resolve(self._place, name)


def _seeded(function, *args, **kwargs):
    lamella.manual_seed(42)
    return function(*args, **kwargs)


def _names(code):
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _again(function, memo):
    """A Python function with its globals and closure over Lamella."""
    globals_ = dict(function.__globals__)
    # Cells are filled afterwards: functions may refer to themselves.
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    made = types.FunctionType(
        function.__code__, globals_, function.__name__, None, cells or None
    )
    memo[id(function)] = made
    made.__defaults__ = ours(function.__defaults__, memo)
    made.__kwdefaults__ = ours(function.__kwdefaults__, memo)
    for cell, theirs in zip(cells, function.__closure__ or ()):
        cell.cell_contents = ours(theirs.cell_contents, memo)
    for name in set(_names(function.__code__)):
        if name in globals_:
            with contextlib.suppress(Absent):
                globals_[name] = ours(globals_[name], memo)
    return made


def ours(value, memo=None):
    """What stands in Lamella for something of PyTorch's."""
    memo = {} if memo is None else memo
    if value is torch:
        return Mirror("")
    if id(value) in memo:
        return memo[id(value)]
    if value is SEEDED:
        return _seeded
    if isinstance(value, types.ModuleType) and value.__name__.startswith("torch."):
        return Mirror(value.__name__.partition(".")[2])
    if value is torch.Tensor:
        return lamella.Tensor
    if id(value) in PATHS:
        return resolve(*PATHS[id(value)])
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        packet = value.overloadpacket if hasattr(value, "overloadpacket") else value
        namespace, _, name = packet._qualified_op_name.partition("::")
        found = resolve(f"ops.{namespace}", name)
        if packet is not value:
            found = getattr(found, value._overloadname)
        return found
    if isinstance(value, functools.partial):
        return functools.partial(
            ours(value.func, memo), *ours(value.args, memo), **ours(value.keywords, memo)
        )
    if isinstance(value, types.FunctionType) and "torch" in value.__module__:
        return _again(value, memo)
    if isinstance(value, types.BuiltinFunctionType) and (value.__module__ or "").startswith("torch"):
        raise Absent(f"lamella.{value.__name__}")
    if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        if issubclass(torch.Tensor, value.__objclass__):
            return resolve("Tensor", value.__name__)
    if isinstance(value, (list, tuple, dict, torch.dtype, torch.layout, torch.memory_format)):
        return to_lamella(value, lambda item: ours(item, memo))
    return value


# ---- Arguments and results -------------------------------------------------------------------------


def name_of(dtype):
    """float32 for torch.float32 and lamella.float32."""
    return str(dtype).rpartition(".")[2]


def dtype_of(dtype):
    name = name_of(dtype)
    try:
        return getattr(lamella, name)
    except AttributeError:
        raise Absent(f"lamella.{name}") from None


def copy_tensor(tensor):
    """A detached copy with the same strides and offset, on memory of its own."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
        return tensor.clone()
    storage = tensor.untyped_storage().clone()
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def whole_storage(tensor):
    """A copy of all elements behind a tensor."""
    storage = tensor.detach().untyped_storage().clone()
    return torch.empty(0, dtype=tensor.dtype).set_(storage)


def to_lamella(value, other=None):
    """A value for Lamella. Tensors become copies with the same strides that require gradients
    where theirs did."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized or value.is_nested:
            raise Absent("tensors that are not strided")
        dtype_of(value.dtype)
        if value.device.type == "meta":
            return lamella.empty_strided(
                value.shape, value.stride(), dtype=dtype_of(value.dtype), device="meta"
            )
        if value.is_conj():
            made = to_lamella(value.detach().conj()).conj()
        elif value.is_neg():
            made = to_lamella(value.detach().resolve_neg())
        else:
            made = lamella.from_dlpack(whole_storage(value)).as_strided(
                value.shape, value.stride(), value.storage_offset()
            )
        return made.requires_grad_() if value.requires_grad and has_autograd() else made
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, torch.memory_format):
        return getattr(lamella, str(value).rpartition(".")[2])
    if isinstance(value, torch.layout):
        if value != torch.strided:
            raise Absent(str(value))
        return lamella.strided
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.Size):
        return lamella.Size(value)
    if isinstance(value, torch.Generator):
        made = lamella.Generator()
        made.manual_seed(value.initial_seed())
        return made
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_lamella(item, other) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_lamella(item, other) for item in value)
    if isinstance(value, dict):
        return {key: to_lamella(item, other) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(to_lamella(part, other) for part in (value.start, value.stop, value.step)))
    return other(value) if other is not None else value


def fresh(value):
    """The same for PyTorch: copies, so that neither side sees the other's writes."""
    if isinstance(value, torch.Tensor):
        return copy_tensor(value).requires_grad_(value.requires_grad)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(fresh, value))
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(map(fresh, value))
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    return value


def tensors_in(value, kind):
    """Tensors of nested lists, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    if isinstance(value, (list, tuple)):
        return list(itertools.chain.from_iterable(tensors_in(item, kind) for item in value))
    return []


def to_torch(tensor):
    """A tensor of Lamella's, for comparing."""
    tensor = tensor.detach() if has_autograd() else tensor
    if str(tensor.device).startswith("meta"):
        return torch.empty(tuple(tensor.shape), dtype=getattr(torch, name_of(tensor.dtype)))
    for bit in ("conj", "neg"):
        if getattr(tensor, f"is_{bit}")():
            tensor = getattr(tensor, f"resolve_{bit}")()
    return torch.from_dlpack(tensor)


class Differs(AssertionError):
    pass


def same(got, expected, what, values=True, tolerance=1.0):
    """Raises Differs where results of Lamella's are not PyTorch's."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(got, lamella.Tensor):
            raise Differs(f"{what}: expected a tensor, got {type(got).__name__}")
        if tuple(got.shape) != tuple(expected.shape):
            raise Differs(f"{what}: expected shape {tuple(expected.shape)}, got {tuple(got.shape)}")
        if name_of(got.dtype) != name_of(expected.dtype):
            raise Differs(f"{what}: expected {expected.dtype}, got {got.dtype}")
        if not values or expected.device.type == "meta":
            return
        relative, absolute = TOLERANCE.get(expected.dtype, (0, 0))
        expected = expected.detach().resolve_conj().resolve_neg()
        try:
            torch.testing.assert_close(
                to_torch(got),
                expected,
                rtol=relative * tolerance,
                atol=absolute * tolerance,
                equal_nan=True,
                check_stride=False,
            )
        except AssertionError as error:
            raise Differs(f"{what}: {' '.join(str(error).split())}") from None
        return
    if isinstance(expected, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            raise Differs(f"{what}: expected {len(expected)} results, got {got!r}")
        for i, (mine, theirs) in enumerate(zip(got, expected)):
            same(mine, theirs, f"{what} {i}", values, tolerance)
        return
    if isinstance(expected, torch.dtype):
        got, expected = name_of(got), name_of(expected)
    if values and got != expected and got == got:
        close = isinstance(expected, (float, complex)) and abs(got - expected) <= 1e-6
        if not close:
            raise Differs(f"{what}: expected {expected!r}, got {got!r}")


def same_gradients(got, expected, what, tolerance=1.0):
    """An absent gradient and one of zeros say the same."""
    for i, (mine, theirs) in enumerate(zip(got, expected)):
        if mine is None and theirs is None:
            continue
        if theirs is None:
            theirs = torch.zeros_like(to_torch(mine))
        if mine is None:
            if theirs.count_nonzero() == 0:
                continue
            raise Differs(f"{what} {i}: expected a gradient, got none")
        same(mine, theirs, f"{what} {i}", tolerance=tolerance)


# ---- Autograd of either side -----------------------------------------------------------------------


@functools.lru_cache(None)
def has_autograd():
    return hasattr(lamella.Tensor, "requires_grad_")


def random_like(tensor, generator):
    return torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator)


class Side:
    """The same calls on PyTorch or on Lamella."""

    def __init__(self, module, convert):
        self.module = module
        self.convert = convert

    def tensors(self, value):
        return tensors_in(value, self.module.Tensor)

    def grad(self, outputs, inputs, grads, create_graph=False):
        return self.module.autograd.grad(
            outputs, inputs, grads, create_graph=create_graph, allow_unused=True
        )


THEIRS = Side(torch, fresh)
OURS = Side(lamella, to_lamella)


def on_both(work):
    """Runs `work(side)` for both; NotChecked where PyTorch itself cannot."""
    try:
        theirs = work(THEIRS)
    except Exception as error:
        raise NotChecked(str(error)) from None
    return work(OURS), theirs


class NotChecked(Exception):
    """PyTorch has no answer for this."""


# ---- Entries ---------------------------------------------------------------------------------------


class Entry:
    def __init__(self, info):
        self.info = info
        self.name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name

    def function(self):
        """The entry's function over Lamella; raises Absent."""
        return ours(self.info.get_op())

    def samples(self, dtype):
        count = COUNTS[dtype]
        wants_grad = self.info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        torch.manual_seed(0)
        made = self.info.sample_inputs("cpu", dtype, requires_grad=wants_grad)
        if MODE == "all":
            return list(made)
        found = []
        for sample in itertools.islice(made, GENERATED):
            tensors = tensors_in([sample.input, sample.args, sample.kwargs], torch.Tensor)
            if sum(t.numel() for t in tensors) <= LARGEST:
                found.append(sample)
        if len(found) <= count:
            return found
        return [found[round(i * (len(found) - 1) / max(count - 1, 1))] for i in range(count)]

    def dtypes(self):
        """Those compared: float64, complex128 and float32, or else whole numbers or bool."""
        floating = [torch.float64, torch.complex128, torch.float32]
        has = [d for d in floating if d in self.info.dtypes]
        rest = [d for d in (torch.int64, torch.bool) if d in self.info.dtypes]
        return has or rest[:1] or ([] if self.info.dtypes else [torch.float32])

    def failures(self, checks=CHECKS):
        """From check to the first difference found. Raises Absent."""
        function = self.function()
        found = {}
        ran = 0
        absent = None
        for dtype in self.dtypes():
            for number, sample in enumerate(self.samples(dtype)):
                run = SampleRun(self, function, sample, dtype)
                try:
                    run.check(checks, found, f"{str(dtype)[6:]} sample {number}")
                except Absent as error:
                    absent = error
                    continue
                except NotChecked:
                    continue
                ran += 1
        compared["entries"] += ran > 0
        compared["samples"] += ran
        if ran == 0 and not found and absent is not None:
            raise absent
        return found


class SampleRun:
    """One sample of an entry."""

    def __init__(self, entry, function, sample, dtype):
        self.entry = entry
        self.info = entry.info
        self.functions = {torch: self.info.get_op(), lamella: function}
        # Some operators take only a part of their input, such as a triangle: their derivatives
        # are defined for what the entry's wrapper makes of the input.
        wrapper = self.info.gradcheck_wrapper
        self.wrapped = {
            THEIRS: functools.partial(wrapper, self.functions[torch]),
            OURS: functools.partial(ours(wrapper), function),
        }
        self.sample = sample
        self.process = {
            torch: sample.output_process_fn_grad,
            lamella: ours(sample.output_process_fn_grad),
        }
        self.generator = torch.Generator().manual_seed(1)
        self.tolerance = 1.0
        self.floating = dtype.is_floating_point or dtype.is_complex
        self.gradients = self.info.supports_autograd and self.floating and has_autograd()
        self.seconds = self.gradients and dtype.itemsize >= 8 and self.info.supports_gradgrad
        self.forwards = self.gradients and dtype.itemsize >= 8 and self.info.supports_forward_ad

    def call(self, side, function=None):
        """Arguments made anew, results, and the inputs that require gradients."""
        call = [self.sample.input, list(self.sample.args), dict(self.sample.kwargs)]
        first, args, kwargs = side.convert(call)
        side.module.manual_seed(0)
        function = function or self.functions[side.module]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(first, *args, **kwargs)
        inputs = []
        if has_autograd():
            inputs = [t for t in side.tensors([first, args, kwargs]) if t.requires_grad]
        return result, inputs, [first, args, kwargs]

    def is_random(self):
        if self.info.name in UNINITIALISED:
            return True
        invocations.wrapper_set_seed = lambda function, *args, **kwargs: function(*args, **kwargs)
        try:
            return self.differs_from_itself()
        finally:
            invocations.wrapper_set_seed = SEEDED

    def differs_from_itself(self):
        torch.manual_seed(1)
        call = fresh([self.sample.input, list(self.sample.args), dict(self.sample.kwargs)])
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = self.functions[torch](call[0], *call[1], **call[2])
            torch.manual_seed(2)
            call = fresh([self.sample.input, list(self.sample.args), dict(self.sample.kwargs)])
            other = self.functions[torch](call[0], *call[1], **call[2])
        pairs = zip(tensors_in(again, torch.Tensor), tensors_in(other, torch.Tensor))
        return any(
            a.shape != b.shape or not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs
        )

    def check(self, checks, found, where):
        def attempt(name, work):
            if name not in checks or name in found:
                return True
            try:
                work()
                return True
            except NotChecked:
                raise
            except Exception as error:
                if isinstance(error, Absent) and name == "forward":
                    raise
                found[name] = f"{where}: {type(error).__name__}: {error}"[:600]
                return False

        try:
            random = self.is_random()
        except Exception as error:
            raise NotChecked(str(error)) from None
        attempt("forward", lambda: self.forward(random))
        if random or "forward" in found:
            return
        for name, wanted, work in [
            ("grad", self.gradients, self.first_gradients),
            ("gradgrad", self.seconds, self.second_gradients),
            ("jvp", self.forwards, self.forward_mode),
            ("inplace", self.floating, self.in_place),
            ("out", self.gradients and self.info.supports_out, self.out_raises),
        ]:
            if wanted and not (name == "gradgrad" and "grad" in found):
                with contextlib.suppress(NotChecked):
                    attempt(name, work)

    def forward(self, random):
        got, expected = on_both(lambda side: self.call(side)[0])
        try:
            same(got, expected, "result", not random, self.tolerance)
        except Differs:
            # Signs and phases may be free; the entry says what is left then.
            if not isinstance(got, (list, tuple)):
                raise
            process = self.process
            same(process[lamella](got), process[torch](expected), "result", tolerance=self.tolerance)

    def outputs(self, side, function=None):
        result, inputs, _ = self.call(side, function or self.wrapped[side])
        results = side.tensors(self.process[side.module](result))
        return results, inputs

    def recorded(self):
        """Results that require gradients and inputs of both sides."""
        (mine, my_inputs), (theirs, inputs) = on_both(self.outputs)
        flags = [t.requires_grad for t in theirs]
        if [t.requires_grad for t in mine] != flags:
            raise Differs(
                f"requires_grad of the results: expected {flags}, "
                f"got {[t.requires_grad for t in mine]}"
            )
        keep = [i for i, flag in enumerate(flags) if flag]
        if not keep or not inputs:
            raise NotChecked("nothing to differentiate")
        compared["gradients"] += 1
        return [mine[i] for i in keep], my_inputs, [theirs[i] for i in keep], inputs

    def first_gradients(self):
        mine, my_inputs, theirs, inputs = self.recorded()
        grads = [random_like(t, self.generator) for t in theirs]
        try:
            expected = THEIRS.grad(theirs, inputs, grads)
        except Exception as error:
            raise NotChecked(str(error)) from None
        got = OURS.grad(mine, my_inputs, [to_lamella(g) for g in grads])
        same_gradients(got, expected, "gradient of input", self.tolerance)

    def second_gradients(self):
        mine, my_inputs, theirs, inputs = self.recorded()
        grads = [random_like(t, self.generator).requires_grad_() for t in theirs]
        try:
            first = THEIRS.grad(theirs, inputs, grads, True)
            keep = [i for i, g in enumerate(first) if g is not None and g.requires_grad]
            if not keep:
                raise NotChecked("no second derivative")
            seconds = [random_like(first[i], self.generator) for i in keep]
            expected = THEIRS.grad([first[i] for i in keep], inputs + grads, seconds)
        except Exception as error:
            raise NotChecked(str(error)) from None
        my_grads = [to_lamella(g) for g in grads]
        my_first = OURS.grad(mine, my_inputs, my_grads, True)
        pairs = [
            (my_first[i], s)
            for i, s in zip(keep, seconds)
            if my_first[i] is not None and my_first[i].requires_grad
        ]
        wanted = len(my_inputs) + len(my_grads)
        got = [None] * wanted
        if pairs:
            got = OURS.grad(
                [g for g, _ in pairs], my_inputs + my_grads, [to_lamella(s) for _, s in pairs]
            )
        same_gradients(got, expected, "second gradient of input", self.tolerance)

    def forward_mode(self):
        floating = [
            t
            for t in tensors_in(
                [self.sample.input, list(self.sample.args), self.sample.kwargs], torch.Tensor
            )
            if t.requires_grad
        ]
        tangents = {id(t): random_like(t, self.generator) for t in floating}

        def run(side):
            forward_ad = side.module.autograd.forward_ad

            def dual(value):
                if isinstance(value, torch.Tensor):
                    made = side.convert(value.detach())
                    if id(value) in tangents:
                        made = forward_ad.make_dual(made, side.convert(tangents[id(value)]))
                    return made
                if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                    if hasattr(value, "_fields"):
                        return type(value)(*map(dual, value))
                    return type(value)(map(dual, value))
                if isinstance(value, dict):
                    return {key: dual(item) for key, item in value.items()}
                return side.convert(value)

            with forward_ad.dual_level(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                first, args, kwargs = map(
                    dual, [self.sample.input, list(self.sample.args), dict(self.sample.kwargs)]
                )
                result = self.wrapped[side](first, *args, **kwargs)
                results = side.tensors(self.process[side.module](result))
                return [forward_ad.unpack_dual(t).tangent for t in results]

        got, expected = on_both(run)
        if all(t is None for t in expected):
            raise NotChecked("no tangent")
        same_gradients(got, expected, "tangent of result", self.tolerance)

    def in_place(self):
        theirs = self.info.get_inplace()
        first = self.sample.input
        if theirs is None or not isinstance(first, torch.Tensor):
            raise NotChecked("no in-place form")
        forms = {torch: theirs, lamella: ours(theirs)}

        def run(side):
            def on_a_copy(first, *args, **kwargs):
                return forms[side.module](first.clone(), *args, **kwargs)

            return on_a_copy

        by_side = {side: run(side) for side in (THEIRS, OURS)}
        got, expected = on_both(lambda side: self.call(side, by_side[side])[0])
        same(got, expected, "result in place", tolerance=self.tolerance)
        if not (self.gradients and self.info.supports_inplace_autograd):
            return

        def differentiate(side):
            results, inputs = self.outputs(side, by_side[side])
            return results, inputs

        (mine, my_inputs), (expected, inputs) = on_both(differentiate)
        if not inputs or not all(t.requires_grad for t in expected):
            return
        if not all(t.requires_grad for t in mine):
            raise Differs("expected the written tensor to require gradients")
        grads = [random_like(t, self.generator) for t in expected]
        try:
            expected = THEIRS.grad(expected, inputs, grads)
        except Exception as error:
            raise NotChecked(str(error)) from None
        got = OURS.grad(mine, my_inputs, [to_lamella(g) for g in grads])
        same_gradients(got, expected, "gradient of input, in place", self.tolerance)

    def out_raises(self):
        call = [self.sample.input, list(self.sample.args), dict(self.sample.kwargs)]

        def form(side):
            first, args, kwargs = side.convert(call)
            result = self.functions[side.module](first, *args, **kwargs)
            results = side.tensors(result)
            out = [side.module.empty_like(t.detach()) for t in results]
            out = out[0] if isinstance(result, side.module.Tensor) else tuple(out)
            first, args, kwargs = side.convert(call)
            try:
                self.functions[side.module](first, *args, out=out, **kwargs)
            except (RuntimeError, TypeError) as error:  # TypeError: has no out form
                return str(error)
            return None

        got, expected = on_both(form)
        if expected is not None and "automatic differentiation" in expected and got is None:
            raise Differs("expected out= with inputs that require gradients to raise")


# ---- The lists of what is missing ------------------------------------------------------------------


class KnownList:
    """Lines `entry: reason` (absent) or `entry check check: reason` (differs)."""

    def __init__(self, path):
        self.path = path
        self.lines = path.read_text().splitlines() if path.exists() else []
        self.entries = {}
        for line in self.lines:
            if line and not line.startswith("#"):
                words, _, reason = line.partition(": ")
                name, *checks = words.split(" ")
                self.entries[name] = (set(checks), reason)

    def shrink(self, needed):
        """Takes away lines and checks that are not in `needed` (from entry to checks)."""
        kept = []
        for line in self.lines:
            words, separator, reason = line.partition(": ")
            name, *checks = words.split(" ")
            if not line or line.startswith("#"):
                kept.append(line)
            elif name in needed:
                left = [check for check in checks if check in needed[name]]
                if left or not checks:
                    kept.append(" ".join([name, *left]) + separator + reason)
        self.path.write_text("\n".join(kept) + "\n")


ENTRIES = [Entry(info) for info in TABLE]
ABSENT = KnownList(HERE / "op_db_absent.txt")
DIFFERS = KnownList(HERE / "op_db_differs.txt")


def summary():
    if not compared["entries"]:
        return None
    return (
        f"op_db: {compared['entries']} operators compared with PyTorch on "
        f"{compared['samples']} samples ({compared['gradients']} with gradients), "
        f"{len(ABSENT.entries)} absent, {len(DIFFERS.entries)} known to differ"
    )


def reason_of(texts):
    """The first difference in one line, without where it was found."""
    line = next(iter(texts.values())).splitlines()[0].partition(": ")[2]
    line = line.replace("Differs: ", "", 1).partition(" (the operator was registered at")[0]
    return line[:160].rstrip(": ")


def write_lists():
    """Writes both lists as they are needed now, with the reasons that they have."""
    absent, differs = [], []
    for entry in ENTRIES:
        try:
            found = entry.failures()
        except Absent as error:
            known = ABSENT.entries.get(entry.name, (None, f"{error} is missing"))
            absent.append(f"{entry.name}: {known[1]}")
            continue
        if found:
            checks, reason = DIFFERS.entries.get(entry.name, (set(), ""))
            reason = reason if set(found) <= checks else reason_of(found)
            differs.append(f"{entry.name} {' '.join(found)}: {reason}")
    for known, lines in ((ABSENT, absent), (DIFFERS, differs)):
        head = [line for line in known.lines if line.startswith("#")]
        known.path.write_text("\n".join(head + lines) + "\n")


def main(names):
    """Prints the differences of the named entries, or of all, whether known or not."""
    if names == ["--write-lists"]:
        write_lists()
        names = ["none"]
    for entry in ENTRIES:
        if names and entry.name not in names and entry.info.name not in names:
            continue
        try:
            for check, text in entry.failures().items():
                print(f"{entry.name} {check}: {text}")
        except Absent as absent:
            print(f"{entry.name}: absent: {absent}")
    print(summary())


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
