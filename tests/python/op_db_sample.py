"""One sample of an entry of op_db, run by PyTorch and by Lamella and compared. See op_db.py."""

from __future__ import annotations

import contextlib
import functools
import warnings

import torch
from op_db_mirror import (
    SEEDED,
    Absent,
    fresh,
    has_autograd,
    invocations,
    name_of,
    ours,
    tensors_in,
    to_lamella,
    to_torch,
)

import lamella

# (relative, absolute)
TOLERANCE = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (1e-4, 1e-4),
    torch.complex64: (1e-4, 1e-4),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (2e-2, 2e-2),
}

compared = {"entries": 0, "samples": 0, "gradients": 0, "errors": 0}


class Differs(AssertionError):
    pass


def same(got, expected, what, values=True, tolerance=1.0):
    """Raises Differs where results of Lamella's are not PyTorch's."""
    if isinstance(expected, torch.Tensor):
        if expected.layout != torch.strided:
            if name_of(expected.layout) != name_of(getattr(got, "layout", None)):
                raise Differs(f"{what}: expected layout {expected.layout}, got {got!r}")
            expected, got = expected.detach().to_dense(), got.to_dense()
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
        if expected.dtype in (torch.float16, torch.bfloat16) and expected.numel():
            # Sums of products in lower precision may cancel.
            absolute *= max(1.0, expected.abs().nan_to_num(0, 0, 0).max().item())
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


# ---- Either side ---------------------------------------------------------------------------------


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


# ---- Samples -------------------------------------------------------------------------------------


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
        if not self.entry.has_values:
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
                a.shape != b.shape or not torch.equal(a.nan_to_num(), b.nan_to_num())
                for a, b in pairs
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
            ("fwdrev", self.forwards and self.seconds, self.forward_over_reverse),
            ("revfwd", self.forwards and self.seconds, self.reverse_over_forward),
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
            same(
                process[lamella](got), process[torch](expected), "result", tolerance=self.tolerance
            )

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

    def floating_tensors(self):
        """Those of the sample that require gradients, with a tangent for each by identity."""
        call = [self.sample.input, list(self.sample.args), self.sample.kwargs]
        found = [t for t in tensors_in(call, torch.Tensor) if t.requires_grad]
        return {id(t): random_like(t, self.generator) for t in found}

    def dual_call(self, side, tangents, record=False):
        """Results of the entry on dual tensors; with `record` also the primal inputs and their
        tangents, which then require gradients."""
        forward_ad = side.module.autograd.forward_ad
        inputs, directions = [], []

        def dual(value):
            if isinstance(value, torch.Tensor):
                made = side.convert(value.detach())
                if id(value) in tangents:
                    direction = side.convert(tangents[id(value)])
                    if record:
                        inputs.append(made.requires_grad_())
                        directions.append(direction.requires_grad_())
                    made = forward_ad.make_dual(made, direction)
                return made
            if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                if hasattr(value, "_fields"):
                    return type(value)(*map(dual, value))
                return type(value)(map(dual, value))
            if isinstance(value, dict):
                return {key: dual(item) for key, item in value.items()}
            return side.convert(value)

        first, args, kwargs = map(
            dual, [self.sample.input, list(self.sample.args), dict(self.sample.kwargs)]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = self.wrapped[side](first, *args, **kwargs)
        return side.tensors(self.process[side.module](result)), inputs, directions

    def forward_mode(self):
        tangents = self.floating_tensors()

        def run(side):
            forward_ad = side.module.autograd.forward_ad
            with forward_ad.dual_level():
                results, _, _ = self.dual_call(side, tangents)
                return [forward_ad.unpack_dual(t).tangent for t in results]

        got, expected = on_both(run)
        if all(t is None for t in expected):
            raise NotChecked("no tangent")
        same_gradients(got, expected, "tangent of result", self.tolerance)

    def random_beside(self):
        """The same random tensors for both sides, made once for results of these shapes."""
        made = []

        def numbers(side, results):
            if not made:
                made.extend(random_like(t, self.generator) for t in results)
            return [side.convert(t) for t in made]

        return numbers

    def gradients_of_duals(self, side, tangents, grads_of, grad_tangents_of=None):
        """Gradients of the inputs, dual tensors, and the tangents of these gradients."""
        forward_ad = side.module.autograd.forward_ad
        with forward_ad.dual_level():
            results, inputs, _ = self.dual_call(side, tangents, record=True)
            results = [t for t in results if t.requires_grad]
            if not results:
                raise NotChecked("nothing to differentiate")
            grads = grads_of(side, results)
            if grad_tangents_of is not None:
                grads = list(map(forward_ad.make_dual, grads, grad_tangents_of(side, results)))
            # PyTorch takes factors for constants where nothing is recorded.
            found = side.grad(results, inputs, grads, create_graph=side is THEIRS)
            duals = [(None, None) if t is None else forward_ad.unpack_dual(t) for t in found]
            return [primal for primal, _ in duals], [tangent for _, tangent in duals]

    def forward_over_reverse(self):
        tangents = self.floating_tensors()
        grads_of, grad_tangents_of = self.random_beside(), self.random_beside()
        (mine, my_tangents), (theirs, expected) = on_both(
            lambda side: self.gradients_of_duals(side, tangents, grads_of, grad_tangents_of)
        )
        same_gradients(mine, theirs, "gradient of input", self.tolerance)
        same_gradients(my_tangents, expected, "tangent of the gradient of input", self.tolerance)

    def reverse_over_forward(self):
        """The gradient of <v, J(x) t> in x is the tangent along t of the gradient of <v, f(x)>, and
        in t it is J^T v: what PyTorch gives for these is not what it takes for constants."""
        tangents = self.floating_tensors()
        grads_of = self.random_beside()
        try:
            gradients, seconds = self.gradients_of_duals(THEIRS, tangents, grads_of)
        except Exception as error:
            raise NotChecked(str(error)) from None
        forward_ad = lamella.autograd.forward_ad
        with forward_ad.dual_level():
            results, inputs, directions = self.dual_call(OURS, tangents, record=True)
            results = [t for t in results if t.requires_grad]
            along = [forward_ad.unpack_dual(t).tangent for t in results]
            pairs = [
                (t, g)
                for t, g in zip(along, grads_of(OURS, results))
                if t is not None and t.requires_grad
            ]
            got = [None] * (len(inputs) + len(directions))
            if pairs:
                got = OURS.grad([t for t, _ in pairs], inputs + directions, [g for _, g in pairs])
        what = "gradient of the tangent in input"
        same_gradients(got, [*seconds, *gradients], what, self.tolerance)

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
