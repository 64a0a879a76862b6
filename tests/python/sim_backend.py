"""The devices of examples/backend, built once and loaded: sim:0 and sim:1."""

import functools

from build_tree import build_example

import lamella


@functools.lru_cache(None)
def folder():
    return build_example("backend")


def library():
    return str(folder() / "libsim.so")


@functools.lru_cache(None)
def load():
    return lamella.load_library(library())


def change(value, tensor, device=None):
    """Nested lists and dicts with their tensors changed, and devices named "cpu" replaced."""
    if isinstance(value, lamella.Tensor):
        return tensor(value)
    if isinstance(value, dict):
        return {key: change(item, tensor, device) for key, item in value.items()}
    if device is not None and value == "cpu" and isinstance(value, str):
        return device
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(change(item, tensor, device) for item in value))
    if isinstance(value, (list, tuple)) and not isinstance(value, lamella.Size):
        return type(value)(change(item, tensor, device) for item in value)
    return value


def onto(value, device="sim"):
    """Copies of tensors on a device with their strides; they require gradients where theirs do."""

    def move(tensor):
        if tensor.device.type != "cpu":
            return tensor
        if tensor.is_conj():
            return move(tensor.detach().conj()).conj().requires_grad_(tensor.requires_grad)
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        flat = tensor.detach().as_strided([count], [1], 0).to(device)
        made = flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return made.detach().requires_grad_(tensor.requires_grad)

    return change(value, move, device)


def back(value):
    return change(value, lambda tensor: tensor.cpu())
