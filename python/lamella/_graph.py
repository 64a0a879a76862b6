"""Graph: the operator calls of a traced function, as lamella.trace records them; saves and loads
them."""

from __future__ import annotations

import collections
import io
import json
import os
import tempfile
import zipfile
from typing import Any, NamedTuple

import lamella
from lamella import _C, Tensor, _nest
from lamella._nest import Nest
from lamella._safetensors import load_file, save_file, whole_file

__all__ = ["Graph", "Node", "Value"]

_FORMAT = "lamella.graph"
_VERSION = 1
_GRAD = ("inherit", "off", "on")


class Value(NamedTuple):
    """A tensor of a graph. kind: "input", "parameter", "constant" or "result". root: the number of
    the first value that shares its memory."""

    id: int
    kind: str
    name: str | None
    dtype: Any
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: Any
    requires_grad: bool
    root: int


class Node(NamedTuple):
    """One call of an operator. uses, makes, writes: numbers of values. grad: "off" or "on" if grad
    mode differed from that at the start of the trace, else "inherit"."""

    op: str
    uses: tuple[int, ...]
    makes: tuple[int, ...]
    writes: tuple[int, ...]
    file: str
    line: int
    grad: str
    text: str


class Graph:
    """What a function does, as operators in order. Calling it runs them.

    str(graph) lists it: `%3: float32[2, 3] = aten::add.Tensor(%1, %2, alpha=1)  # file.py:12`.
    Values are numbered: inputs, parameters, constants, results.
    """

    def __init__(self, raw: Any, arguments: Nest, results: Nest) -> None:
        self._raw = raw
        self._arguments = arguments
        self._results = results

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the operators on other tensors of the recorded shapes, dtypes and devices."""
        given = Nest.pack((args, kwargs))
        if given.form != self._arguments.form:
            text = _nest.difference(self._arguments.form, given.form)
            if text:
                raise RuntimeError(f"graph: expected arguments {text}")
        return self._results.unpack(self._raw.run(given.tensors))

    # ---- Reading ----

    def __str__(self) -> str:
        return str(self._raw)

    def __repr__(self) -> str:
        return f"<lamella.Graph of {len(self)} nodes>"

    def __len__(self) -> int:
        return self._raw.count()

    @property
    def code(self) -> str:
        """The listing, as str() gives it."""
        return str(self._raw)

    @property
    def values(self) -> list[Value]:
        return [
            Value(
                i,
                v["kind"],
                v["name"],
                _nest.dtype_named(v["dtype"]),
                tuple(v["shape"]),
                tuple(v["stride"]),
                lamella.device(v["device"]),
                v["requires_grad"],
                v["root"],
            )
            for i, v in enumerate(self._raw.values())
        ]

    @property
    def nodes(self) -> list[Node]:
        return [
            Node(
                n["op"],
                tuple(n["uses"]),
                tuple(n["makes"]),
                tuple(n["writes"]),
                n["file"],
                n["line"],
                n["grad"],
                n["text"],
            )
            for n in self._raw.nodes()
        ]

    @property
    def inputs(self) -> list[int]:
        """Numbers of the values that are inputs."""
        return self._raw.inputs()

    @property
    def outputs(self) -> list[int | None]:
        """Numbers of the values that are returned; None for an undefined tensor."""
        return self._raw.outputs()

    def _outside(self, kind: str) -> dict[str, Tensor]:
        return {
            v["name"]: self._raw.tensor(i)
            for i, v in enumerate(self._raw.values())
            if v["kind"] == kind
        }

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Tensors of the traced module, and others that require gradients, by name."""
        return self._outside("parameter")

    @property
    def constants(self) -> dict[str, Tensor]:
        """All other tensors that the function took from outside, by name."""
        return self._outside("constant")

    @property
    def mutated(self) -> list[str]:
        """Names of the inputs, parameters and constants that the function writes."""
        values = self._raw.values()
        return [values[i]["name"] for i in self._raw.mutated()]

    def operators(self) -> dict[str, int]:
        """How often each operator is called, most frequent first."""
        return dict(collections.Counter(n["op"] for n in self._raw.nodes()).most_common())

    def difference(self, other: Graph) -> str:
        """The first difference from another graph, as text; empty if they say the same."""
        text = self._raw.difference(other._raw, True)
        if not text:
            text = _nest.difference(self._arguments.form, other._arguments.form, " as arguments")
        return text or _nest.difference(self._results.form, other._results.form, " as results")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return not self.difference(other)

    # ---- Changing ----

    def eliminate_dead_code(self) -> int:
        """Removes nodes that affect neither the results nor tensors outside of the graph; returns
        how many."""
        before = len(self)
        self._raw = self._raw.without_dead_code()
        return before - len(self)

    # ---- Drawing ----

    def to_html(self) -> str:
        """A self-contained HTML page that draws the graph, converted by lamella.hlo.from_trace.
        Raises if memory is written through one tensor and read through another."""
        from lamella import hlo

        return hlo.from_trace(self).to_html()

    def _repr_html_(self) -> str:
        from lamella._notebook import page

        return page(self.to_html())

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Writes to_html() to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_html())

    # ---- Files ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph to one file: a zip archive of graph.json and of tensors.safetensors with
        the parameters and constants. It holds no code."""
        values = self._raw.values()
        tensors = {
            str(i): self._raw.tensor(i)
            for i, v in enumerate(values)
            if v["kind"] in ("parameter", "constant")
        }
        complex128 = {name for name, t in tensors.items() if t.dtype == lamella.complex128}
        written = {
            name: lamella.view_as_real(t.detach().resolve_conj()) if name in complex128 else t
            for name, t in tensors.items()
        }
        nodes: list[dict[str, Any]] = []
        operators: dict[str, str] = {}
        places: dict[tuple[str, int], int] = {}
        for n in self._raw.nodes():
            operators[n["op"]] = n["schema"]
            row = {"op": n["op"], "args": n["args"], "returns": n["returns"], "makes": n["makes"]}
            if n["file"]:
                row["at"] = places.setdefault((n["file"], n["line"]), len(places))
            if n["grad"] != "inherit":
                row["grad"] = n["grad"]
            if n["also_writes"]:
                row["also_writes"] = [i for i in range(64) if n["also_writes"] >> i & 1]
            nodes.append(row)
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "lamella": lamella.__version__,
            "operators": operators,
            "arguments": _nest.to_json(self._arguments.form, "arguments"),
            "results": _nest.to_json(self._results.form, "results"),
            "values": values,
            "nodes": nodes,
            "outputs": self._raw.outputs(),
            "places": [list(place) for place in places],
        }
        with tempfile.TemporaryDirectory() as folder, whole_file(path) as partial:
            blob = os.path.join(folder, "tensors.safetensors")
            save_file(written, blob)
            with zipfile.ZipFile(partial, "w") as archive:
                archive.writestr("graph.json", _json_text(document))
                archive.write(blob, "tensors.safetensors")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Graph:
        """Reads a file that save() wrote. Operators may have gained arguments with defaults since;
        RuntimeError lists operators that are missing or have changed in any other way. ValueError
        if the file is not a graph."""
        try:
            with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
                # save() never compresses, so a compressed part is refused: it could be a zip bomb.
                for part in archive.infolist():
                    if part.compress_type != zipfile.ZIP_STORED:
                        raise zipfile.BadZipFile(f"'{part.filename}' compressed")
                document = json.load(io.TextIOWrapper(archive.open("graph.json"), "utf-8"))
                blob = os.path.join(folder, "tensors.safetensors")
                with open(blob, "wb") as file, archive.open("tensors.safetensors") as source:
                    while chunk := source.read(1 << 20):
                        file.write(chunk)
                tensors = {name: t.clone() for name, t in load_file(blob).items()}
        except OSError:
            raise
        # zipfile raises many kinds of exceptions for a damaged file.
        except Exception as error:
            raise ValueError(f"load: expected the file of a graph, got {error} in {path}") from None
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ValueError(f"load: expected the file of a graph, got another format in {path}")
        if document.get("version") != _VERSION:
            raise ValueError(
                f"load: expected a graph of version {_VERSION}, got {document.get('version')} "
                f"in {path}"
            )
        try:
            return _built(document, tensors)
        except (LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"load: expected a complete graph, got {type(error).__name__} {error} in {path}"
            ) from None


def _json_text(document: dict[str, Any]) -> str:
    """The document as JSON, with one line for each value, node, operator and place."""
    lines = []
    for key, content in document.items():
        if isinstance(content, (list, dict)) and key in ("values", "nodes", "operators", "places"):
            if isinstance(content, dict):
                rows = [
                    f"{json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in content.items()
                ]
                left, right = "{", "}"
            else:
                rows = [json.dumps(row, allow_nan=False) for row in content]
                left, right = "[", "]"
            inner = ",\n    ".join(rows)
            text = f"{left}\n    {inner}\n  {right}" if rows else left + right
        else:
            text = json.dumps(content, allow_nan=False)
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _split(op: str) -> tuple[str, str]:
    name, _, overload = op.partition(".")
    return name, overload


def _built(document: dict[str, Any], tensors: dict[str, Tensor]) -> Graph:
    matches: dict[str, list[int]] = {}
    problems: list[str] = []
    for op, schema in document["operators"].items():
        positions, problem = _C._match_schema(*_split(op), schema)
        if problem is not None:
            problems.append(problem)
        matches[op] = positions
    if problems:
        raise RuntimeError(
            "load: expected operators as the graph was saved with, got:\n  " + "\n  ".join(problems)
        )
    raw = _C._Graph()
    values = document["values"]

    def facts(i: int) -> tuple[Any, ...]:
        v = values[i]
        root = v["root"] if v["root"] <= i else None
        return (
            _nest.dtype_named(v["dtype"]),
            lamella.device(v["device"]),
            tuple(v["shape"]),
            tuple(v["stride"]),
            root,
            v["requires_grad"],
        )

    # Inputs, parameters, constants, then results.
    first = 0
    for i, v in enumerate(values):
        if v["kind"] == "result":
            break
        first = i + 1
        if v["kind"] == "input":
            raw.add_input(v["name"], facts(i))
            continue
        raw.add_outside(v["kind"] == "parameter", v["name"], _tensor(tensors[str(i)], v))
    for row in document["nodes"]:
        op = row["op"]
        made = row["makes"]
        if made and sorted(set(made)) != list(range(first, first + len(set(made)))):
            raise ValueError(
                f"load: expected values in the order they are made, got {made} of {op}"
            )
        args = [... if at is None else row["args"][at] for at in matches[op]]
        count = len(set(made))
        results = [facts(i) for i in range(first, first + count)]
        writes = row.get("also_writes", [])
        if not set(writes) <= set(matches[op]):
            raise ValueError(f"load: expected arguments of {op} in also_writes, got {writes}")
        positions = [matches[op].index(i) for i in writes]
        raw.add_node(
            *_split(op),
            args,
            row["returns"],
            results,
            row.get("at"),
            _GRAD.index(row.get("grad", "inherit")),
            sum(1 << i for i in positions),
        )
        first += count
    raw.finish(document["outputs"], [tuple(place) for place in document["places"]])
    return Graph(
        raw,
        Nest(_nest.from_json(document["arguments"]), []),
        Nest(_nest.from_json(document["results"]), []),
    )


def _tensor(tensor: Tensor, v: dict[str, Any]) -> Tensor:
    """A stored tensor with the dtype, strides, device and requires_grad of value `v`."""
    dtype = _nest.dtype_named(v["dtype"])
    if dtype == lamella.complex128:
        tensor = lamella.view_as_complex(tensor)
    if tensor.dtype != dtype or list(tensor.shape) != v["shape"]:
        raise ValueError(
            f"load: expected {v['dtype']}{v['shape']} for '{v['name']}', got "
            f"{tensor.dtype}{list(tensor.shape)}"
        )
    if _is_dense(v["shape"], v["stride"]):
        made = lamella.empty_strided(v["shape"], v["stride"], dtype=dtype)
        tensor = made.copy_(tensor)
    tensor = tensor.to(v["device"])
    return tensor.requires_grad_() if v["requires_grad"] else tensor


def _is_dense(shape: list[int], stride: list[int]) -> bool:
    expected = 1
    for step, size in sorted(zip(stride, shape)):
        if size == 0:
            return False
        if size > 1:
            if step != expected:
                return False
            expected *= size
    return True
