"""The hooks of modules, and the call of a module that has hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from typing import Any

import lamella
from lamella.utils.hooks import RemovableHandle


class Hooks:
    """The hooks of one module, by kind; each kind maps a handle's id to (function, with_kwargs).

    A module without hooks has no Hooks, and its call goes straight to forward().
    """

    KINDS = (
        "forward_pre",
        "forward",
        "always",
        "backward_pre",
        "backward",
        "state_dict_pre",
        "state_dict",
        "load_pre",
        "load_post",
        "parameter",
        "buffer",
        "module",
    )

    # Ids of forward hooks that also run after forward() raised.
    always: Any

    def __init__(self) -> None:
        for kind in self.KINDS:
            setattr(self, kind, OrderedDict())

    def add(self, kind: str, hook: Any, with_kwargs: bool = False, prepend: bool = False) -> Any:
        hooks = getattr(self, kind)
        handle = RemovableHandle(hooks, extra_dict=self.always)
        hooks[handle.id] = (hook, with_kwargs)
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def of(self, kind: str) -> list[Any]:
        """The functions of a kind whose hooks have no with_kwargs."""
        return [hook for hook, _ in getattr(self, kind).values()]


class WithoutModule:
    """A hook that is called without the module; a class, so that it can be pickled and copied."""

    def __init__(self, hook: Any) -> None:
        self.hook = hook

    def __call__(self, _: Any, *rest: Any) -> Any:
        return self.hook(*rest)


# The hooks of all modules. Module._hooks is this once there is one and None before, so that the
# call of a module without hooks makes a single test.
EVERYWHERE = Hooks()
# The class Module, set by module.py.
base: Any = None


def add_everywhere(kind: str, hook: Any, with_kwargs: bool = False, always: bool = False) -> Any:
    """Adds a hook of a kind to all modules."""
    base._hooks = EVERYWHERE
    handle = EVERYWHERE.add(kind, hook, with_kwargs)
    if always:
        EVERYWHERE.always[handle.id] = True
    return handle


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """The value of a new entry of a module after the registration hooks of its kind."""
    for hook in EVERYWHERE.of(kind):
        found = hook(module, name, value)
        if found is not None:
            value = found
    return value


def _all(hooks: Any, kind: str) -> list[tuple[int, Any]]:
    """The hooks of a kind by their ids, those of all modules first."""
    own = [] if hooks is EVERYWHERE else list(getattr(hooks, kind).items())
    return [*getattr(EVERYWHERE, kind).items(), *own]


# The attributes that hold the hooks of PyTorch's modules.
_OWN_KINDS = Hooks.KINDS[: Hooks.KINDS.index("load_pre")]
VIEWS = {f"_{kind}_hooks": kind for kind in _OWN_KINDS if kind != "always"}
VIEWS |= {f"_load_state_dict_{when}_hooks": f"load_{when}" for when in ("pre", "post")}


def own(module: Any) -> Hooks:
    """The hooks of a module, created if there are none."""
    if "_hooks" not in module.__dict__:
        object.__setattr__(module, "_hooks", Hooks())
    hooks: Hooks = module.__dict__["_hooks"]
    return hooks


class View(MutableMapping[int, Any]):
    """The hooks of one kind of a module, as a mapping from a handle's id to the function."""

    def __init__(self, module: Any, kind: str) -> None:
        self._module, self._kind = module, kind

    def _hooks(self) -> dict[int, Any]:
        hooks = self._module.__dict__.get("_hooks")
        return {} if hooks is None else getattr(hooks, self._kind)

    def __getitem__(self, key: int) -> Any:
        return self._hooks()[key][0]

    def __setitem__(self, key: int, hook: Any) -> None:
        getattr(own(self._module), self._kind)[key] = (hook, False)

    def __delitem__(self, key: int) -> None:
        del self._hooks()[key]

    def __len__(self) -> int:
        return len(self._hooks())

    def __iter__(self) -> Iterator[int]:
        return iter(self._hooks())

    def __repr__(self) -> str:
        return repr(OrderedDict(self))


def call(module: Any, hooks: Any, args: Any, kwargs: Any) -> Any:
    """module.forward(*args, **kwargs) between the module's hooks."""
    ran: set[int] = set()
    result = None
    try:
        for _, (hook, with_kwargs) in _all(hooks, "forward_pre"):
            args, kwargs = _before(module, hook, with_kwargs, args, kwargs)
        watch = None
        backward, backward_pre = (
            [hook for _, (hook, _) in _all(hooks, kind)] for kind in ("backward", "backward_pre")
        )
        if backward or backward_pre:
            watch = Watch(module, backward, backward_pre)
            args = watch.inputs(args)
        result = module.forward(*args, **kwargs)
        for key, (hook, with_kwargs) in _all(hooks, "forward"):
            ran.add(key)
            result = _after(module, hook, with_kwargs, args, kwargs, result)
        return result if watch is None else watch.outputs(result)
    except Exception:
        # Hooks with always_call run after the error too; errors of theirs do not replace it.
        always = {*hooks.always, *EVERYWHERE.always}
        for key, (hook, with_kwargs) in _all(hooks, "forward"):
            if key in always and key not in ran:
                try:
                    result = _after(module, hook, with_kwargs, args, kwargs, result)
                except Exception as error:
                    import warnings

                    text = f"forward hook with always_call=True raised {error!r}"
                    warnings.warn(text, stacklevel=2)
        raise


def _before(module: Any, hook: Any, with_kwargs: bool, args: Any, kwargs: Any) -> Any:
    if with_kwargs:
        found = hook(module, args, kwargs)
        if found is None:
            return args, kwargs
        if isinstance(found, tuple) and len(found) == 2:
            return found
        raise RuntimeError(
            "forward pre-hook: expected None or a tuple (args, kwargs) to be returned, got "
            f"{type(found).__name__}"
        )
    found = hook(module, args)
    if found is None:
        return args, kwargs
    return (found if isinstance(found, tuple) else (found,)), kwargs


def _after(module: Any, hook: Any, with_kwargs: bool, args: Any, kwargs: Any, result: Any) -> Any:
    found = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    return result if found is None else found


def _tensors(values: Any) -> list[int]:
    return [i for i, value in enumerate(values) if isinstance(value, lamella.Tensor)]


class Watch:
    """One call of a module with backward hooks.

    An identity is inserted before the module and one after it: backward reaches the second one
    first, with the gradients of the outputs, and the first one last, with those of the inputs.
    """

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.input_count = 0
        self.input_places: list[int] = []
        self.output_count = 0
        self.output_places: list[int] = []
        self.grad_output: Any = None

    def inputs(self, args: Any) -> Any:
        self.input_count = len(args)
        args, self.input_places = self._through(args, self._inputs_done)
        return args

    def outputs(self, result: Any) -> Any:
        single = isinstance(result, lamella.Tensor)
        if not single and not isinstance(result, (tuple, list)):
            return result
        results = (result,) if single else tuple(result)
        self.output_count = len(results)
        results, self.output_places = self._through(results, self._outputs_done)
        if single:
            return results[0]
        if hasattr(result, "_fields"):
            return type(result)(*results)
        return type(result)(results)

    def _through(self, values: Any, done: Any) -> Any:
        places = _tensors(values)
        tensors = [values[i] for i in places]
        if not lamella.is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return values, []
        made = _boundary().apply(done, *tensors)
        made = made if isinstance(made, tuple) else (made,)
        values = list(values)
        for place, tensor in zip(places, made):
            values[place] = tensor
        return tuple(values), places

    @staticmethod
    def _spread(grads: Any, places: list[int], count: int) -> Any:
        spread = [None] * count
        for place, grad in zip(places, grads):
            spread[place] = grad
        return tuple(spread)

    def _outputs_done(self, grads: Any) -> Any:
        grad_output = self._spread(grads, self.output_places, self.output_count)
        for hook in self.pre_hooks:
            found = hook(self.module, grad_output)
            if found is not None:
                grad_output = self._checked(found, self.output_count, "grad_output")
        self.grad_output = grad_output
        if not self.input_places:
            # No input requires a gradient, so backward ends here for this module.
            nothing = (None,) * self.input_count
            for hook in self.hooks:
                found = hook(self.module, nothing, grad_output)
                if found is not None and any(grad is not None for grad in found):
                    raise RuntimeError(
                        "full backward hook: expected None to be returned, as no input of the "
                        "module requires gradients"
                    )
        return tuple(grad_output[i] for i in self.output_places)

    def _inputs_done(self, grads: Any) -> Any:
        if self.grad_output is None:
            # A double backward reaches the inputs by tensors that the module's backward read, not
            # by the outputs: it is no backward of the module.
            return grads
        grad_input = self._spread(grads, self.input_places, self.input_count)
        for hook in self.hooks:
            found = hook(self.module, grad_input, self.grad_output)
            if found is not None:
                grad_input = self._checked(found, self.input_count, "grad_input")
        self.grad_output = None
        return tuple(grad_input[i] for i in self.input_places)

    @staticmethod
    def _checked(found: Any, count: int, name: str) -> Any:
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != count:
            raise RuntimeError(
                f"full backward hook: expected {count} gradients for '{name}' to be returned, "
                f"got {len(found)}"
            )
        return found


_boundary_class: Any = None


def _boundary() -> Any:
    global _boundary_class
    if _boundary_class is None:

        class ModuleBoundary(lamella.autograd.Function):
            """The identity; its backward passes the gradients to a function."""

            @staticmethod
            def forward(ctx: Any, done: Any, *tensors: Any) -> Any:
                ctx.done = done
                ctx.set_materialize_grads(False)
                still = [t for t in tensors if not t.requires_grad]
                made = tuple(t.view_as(t) for t in tensors)
                ctx.mark_non_differentiable(
                    *[m for t, m in zip(tensors, made) if any(t is s for s in still)]
                )
                return made

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return (None, *ctx.done(grads))

        _boundary_class = ModuleBoundary
    return _boundary_class
