"""Graphs as pictures: boxes in layers from top to bottom, written as SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import lamella

_LETTER = 6.7  # width of one, at the size used
_BOX_HEIGHT = 38
_LAYER = 72  # from one layer to the next
_GAP = 18  # between boxes of a layer
_MARGIN = 16
_SWEEPS = 4  # how often boxes are put in order of their neighbours
_LONGEST = 40  # letters of a name

_COLORS = {
    "input": ("#e3f1e3", "#3d7a3d"),
    "parameter": ("#fdf1d8", "#a06a10"),
    "constant": ("#eeeeee", "#777777"),
    "operator": ("#e4ecf7", "#33598c"),
    "write": ("#fbe3e0", "#a8362a"),
    "output": ("#efe6f6", "#6d3f91"),
}
_STYLE = (
    "text{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:11px;fill:#222;"
    "text-anchor:middle}.type{fill:#666}path{fill:none;stroke:#8a8a8a}"
    "path.order{stroke:#a8362a;stroke-dasharray:4 3}"
)


class _Box:
    def __init__(self, kind: str, title: str, subtitle: str, hint: str) -> None:
        self.kind, self.hint = kind, hint
        self.title, self.subtitle = _short(title), _short(subtitle)
        self.width = 20 + _LETTER * max(len(self.title), len(self.subtitle))
        self.layer = 0
        self.x = 0.0  # of the middle
        self.wanted = 0.0  # x by its neighbours alone
        self.above: list[_Box] = []
        self.below: list[_Box] = []

    @property
    def y(self) -> int:
        return _MARGIN + self.layer * _LAYER


_Edge = tuple[_Box, _Box, str]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _type(dtype: lamella.dtype, shape: tuple[int, ...]) -> str:
    sizes = ", ".join(map(str, shape))
    return f"{str(dtype).rpartition('.')[2]}[{sizes}]"


def _boxes(graph: lamella.Graph) -> tuple[list[_Box], list[_Edge]]:
    """Boxes in an order in which none comes before what it uses, and edges (from, to, class)."""
    values, nodes = graph.values, graph.nodes
    boxes: list[_Box] = []
    edges: list[_Edge] = []
    of_value: dict[int, _Box] = {}
    for value in values:
        if value.kind == "result":
            continue
        hint = f"%{value.id}: {value.kind} {value.name}"
        box = _Box(value.kind, value.name or "", _type(value.dtype, value.shape), hint)
        of_value[value.id] = box
        boxes.append(box)
    writer: dict[int, tuple[_Box, int]] = {}  # of each root, the last box that wrote it, and when
    made_at: dict[int, int] = {}
    for number, node in enumerate(nodes):
        subtitle = ", ".join(_type(values[i].dtype, values[i].shape) for i in node.makes[:2])
        where = f"\n{node.file}:{node.line}" if node.file else ""
        box = _Box(
            "write" if node.writes else "operator",
            node.op.partition("::")[2] if node.op.startswith("aten::") else node.op,
            subtitle + (", …" if len(node.makes) > 2 else ""),
            node.text + where,
        )
        seen = set()
        for i in node.uses:
            source = of_value.get(i)
            if source is not None and id(source) not in seen:
                seen.add(id(source))
                edges.append((source, box, ""))
            last = writer.get(values[i].root)
            if last is not None and last[1] >= made_at.get(i, -1) and id(last[0]) not in seen:
                seen.add(id(last[0]))
                edges.append((last[0], box, "order"))
        for i in node.makes:
            of_value[i] = box
            made_at[i] = number
        for i in node.writes:
            writer[values[i].root] = (box, number)
        boxes.append(box)
    for number, output in enumerate(graph.outputs):
        if output is None or output not in of_value:
            continue
        value = values[output]
        title = f"output {number}"
        hint = f"{title}: %{value.id}"
        box = _Box("output", title, _type(value.dtype, value.shape), hint)
        edges.append((of_value[output], box, ""))
        boxes.append(box)
    return boxes, edges


def _layers(boxes: list[_Box], edges: list[_Edge]) -> list[list[_Box]]:
    for source, target, _ in edges:
        source.below.append(target)
        target.above.append(source)
    for box in boxes:
        box.layer = max((source.layer + 1 for source in box.above), default=0)
    # What comes from outside stands right above its first use.
    for box in boxes:
        if not box.above and box.below:
            box.layer = max(0, min(target.layer for target in box.below) - 1)
    layers: list[list[_Box]] = [
        [] for _ in range(max((box.layer for box in boxes), default=-1) + 1)
    ]
    for box in boxes:
        layers[box.layer].append(box)
    return layers


def _place(layers: list[list[_Box]]) -> None:
    def spread(layer: list[_Box]) -> None:
        x = 0.0
        for box in layer:
            box.x = x + box.width / 2
            x += box.width + _GAP
        shift = (x - _GAP) / 2
        for box in layer:
            box.x -= shift

    for layer in layers:
        spread(layer)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            for box in layer:
                near = box.above if downwards else box.below
                box.wanted = sum(b.x for b in near) / len(near) if near else box.x
            layer.sort(key=lambda box: box.wanted)
            # As near to its neighbours as the one before it allows, and the layer in the middle.
            x = float("-inf")
            for box in layer:
                box.x = max(box.wanted, x + box.width / 2)
                x = box.x + box.width / 2 + _GAP
            off = sum(box.x - box.wanted for box in layer) / len(layer)
            for box in layer:
                box.x -= off


def draw(graph: lamella.Graph) -> str:
    """The picture of a Graph as text."""
    boxes, edges = _boxes(graph)
    layers = _layers(boxes, edges)
    _place(layers)
    left = min((box.x - box.width / 2 for box in boxes), default=0) - _MARGIN
    right = max((box.x + box.width / 2 for box in boxes), default=0) + _MARGIN
    width, height = right - left, 2 * _MARGIN + max(0, len(layers) - 1) * _LAYER + _BOX_HEIGHT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" '
        'style="fill:#8a8a8a;stroke:none"/></marker></defs>',
    ]
    for source, target, kind in edges:
        x1, y1 = source.x - left, source.y + _BOX_HEIGHT
        x2, y2 = target.x - left, target.y
        bend = max(20.0, (y2 - y1) / 2)
        name = f' class="{kind}"' if kind else ""
        out.append(
            f'<path{name} marker-end="url(#tip)" '
            f'd="M{x1:.1f} {y1}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2}"/>'
        )
    for box in boxes:
        fill, stroke = _COLORS[box.kind]
        x, y = box.x - left, box.y
        out.append(
            f"<g><title>{escape(box.hint)}</title>"
            f'<rect x="{x - box.width / 2:.1f}" y="{y}" width="{box.width:.1f}" '
            f'height="{_BOX_HEIGHT}" rx="6" fill="{fill}" stroke="{stroke}"/>'
            f'<text x="{x:.1f}" y="{y + 16}">{escape(box.title)}</text>'
            f'<text class="type" x="{x:.1f}" y="{y + 30}">{escape(box.subtitle)}</text></g>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"
