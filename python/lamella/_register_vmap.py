"""Batching rules written in Python for operators: lamella.library.register_vmap()."""

# Types are for those who call; the bodies are not checked.
# mypy: ignore-errors

from lamella.func.vmap import call_rule


def register(library, name, rule):
    """Registers rule(info, in_dims, *args, **kwargs) -> (outputs, out_dims) in a library."""

    def batched(*args, **kwargs):
        return call_rule(name, rule, args, kwargs)

    library.impl(name, batched, "Batched")
