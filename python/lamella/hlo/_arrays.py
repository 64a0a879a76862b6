"""Converts Python objects to the arrays of HLO: tensors, NumPy arrays, buffers and numbers."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import _C, _hlo

_FORMATS = {str(dtype).rpartition(".")[2]: format for dtype, format, _, _ in _C._scalar_types()}
# Element types by the names that NumPy and ml_dtypes give them, where a buffer cannot say so. The
# second is the dtype that carries the elements in a tensor.
_BY_NAME = {
    name: (element, carrier)
    for element, name, carrier in _hlo._element_types
    if not _FORMATS.get(name)
}
# By element type, what a Python number becomes.
_NUMBERS = {
    element: carrier
    for element, name, carrier in _hlo._element_types
    if carrier == name or element[0] in "su"
}


def carrier(element: str) -> str:
    """The name of the dtype of tensors that hold arrays of an element type."""
    return _NUMBERS.get(element, "uint8")


def convert(value: Any, element: str, dimensions: tuple[int, ...]) -> Any:
    """A Tensor or an object with a buffer, and the name of its element type ("": that of its
    dtype). If `value` cannot be converted, a text that describes it instead of the pair."""
    name = getattr(getattr(value, "dtype", None), "name", None)
    if name in _BY_NAME:
        own, carrier = _BY_NAME[name]
        return _carried(value, carrier), own
    if isinstance(value, (bool, int, float, complex)):
        return _number(value, element, dimensions)
    if isinstance(value, list):
        return _list(value, element)
    if hasattr(value, "__dlpack__") and not _is_numpy(value):
        return _C.from_dlpack(value, _only_read=True), ""
    try:
        memoryview(value)
    except (TypeError, ValueError, BufferError):
        if not hasattr(value, "__array__"):
            return type(value).__name__
        import numpy

        value = numpy.asarray(value)
        name = value.dtype.name
        if name in _BY_NAME:
            own, carrier = _BY_NAME[name]
            return _carried(value, carrier), own
    if isinstance(value, (bytes, str)):
        return type(value).__name__
    name = getattr(getattr(value, "dtype", None), "name", None)
    if _is_numpy(value):
        import numpy

        array = numpy.asarray(value)
        if array.dtype.kind not in "?biufc" or array.dtype.name in ("float128", "complex256"):
            return f"an array of {name}"
        if not array.dtype.isnative or any(stride < 0 for stride in array.strides):
            array = numpy.array(array, dtype=array.dtype.newbyteorder("="), order="C")
        value = array
    return value, ""


def _is_numpy(value: Any) -> bool:
    return type(value).__module__ == "numpy"


def _carried(value: Any, carrier: str) -> Any:
    """A tensor of dtype `carrier` with the bytes of an array whose dtype is from ml_dtypes."""
    import numpy

    array = numpy.ascontiguousarray(numpy.asarray(value)).reshape(numpy.shape(value))
    bits = array.view(numpy.uint16 if array.dtype.itemsize == 2 else numpy.uint8)
    return lamella.from_numpy(_writable(bits)).view(getattr(lamella, carrier))


def _writable(array: Any) -> Any:
    return array if array.flags.writeable else array.copy()


def _number(value: Any, element: str, dimensions: tuple[int, ...]) -> Any:
    kind = type(value).__name__
    dtype = _NUMBERS.get(element)
    fits = {
        "bool": element == "pred",
        "int": element != "pred",
        "float": element[0] in "fbc",
        "complex": element[0] == "c",
    }
    if (
        dtype is None
        or dimensions
        or not next(
            fits[name] for name in ("bool", "int", "float", "complex") if _is_a(value, name)
        )
    ):
        return f"a number ({kind})"
    return _tensor(value, dtype), ""


def _is_a(value: Any, name: str) -> bool:
    return isinstance(value, {"bool": bool, "int": int, "float": float, "complex": complex}[name])


def _tensor(value: Any, dtype: str) -> Any:
    try:
        return lamella.tensor(value, dtype=getattr(lamella, dtype))
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise type(error)(f"hlo: {error}") from None


def _list(value: Any, element: str) -> Any:
    dtype = _NUMBERS.get(element)
    if dtype is None:
        return "list"
    return _tensor(value, dtype), ""


# The element types of Python numbers without a requested type.
_DEFAULTS = ((bool, "pred"), (int, "s32"), (float, "f32"), (complex, "c64"))


def constant(value: Any, element: str) -> tuple[Any, str]:
    """A Tensor with a constant's elements, and the name of their type. element: the requested type;
    "": the type of the value, and f32, s32, pred or c64 for Python numbers."""
    if isinstance(value, (bool, int, float, complex, list)):
        element = element or _default(value)
        made = _tensor(value, carrier(element))
        return made, element
    made = convert(value, element, ())
    if isinstance(made, str):
        raise TypeError(f"constant: expected a number or an array, got {made}")
    tensor, own = made
    if not isinstance(tensor, lamella.Tensor):
        tensor = lamella.from_numpy(_writable(tensor)) if _is_numpy(tensor) else _copied(tensor)
    own = own or _element_of(tensor)
    if element and element != own:
        if own not in _NUMBERS or element not in _NUMBERS:
            raise TypeError(f"constant: expected elements of {element}, got {own}")
        tensor, own = tensor.to(getattr(lamella, carrier(element))), element
    return tensor, own


def _default(value: Any) -> str:
    """The default element type for the widest kind of numbers in nested lists."""
    place = -1
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
            continue
        for i, (kind, _) in enumerate(_DEFAULTS):
            if isinstance(one, kind):
                place = max(place, i)
                break
    return _DEFAULTS[place][1] if place >= 0 else "f32"


def _copied(value: Any) -> Any:
    return lamella.tensor(memoryview(value))


def _element_of(tensor: Any) -> str:
    name = str(tensor.dtype).rpartition(".")[2]
    for element, carried in _NUMBERS.items():
        if carried == name:
            return element
    return name
