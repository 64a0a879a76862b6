"""What notebooks show of graphs, programs, profiles, modules and large tensors."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import lamella
from lamella import Tensor, _tensor_str


def page(text: str) -> str:
    """A whole page inside of a frame, which keeps its styles and scripts apart."""
    return (
        f'<iframe srcdoc="{html.escape(text)}" sandbox="allow-scripts" loading="lazy" '
        'style="width:100%;height:480px;border:1px solid #ccc"></iframe>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def row(cells: Sequence[object], tag: str) -> str:
        inner = "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def of_tensor(self: Tensor) -> str | None:
    """For tensors that print abbreviated: what they are, the range of their elements, and the text;
    None for others, which notebooks show as text."""
    if self.numel() <= _tensor_str._options.threshold or self.device.type != "cpu":
        return None
    with lamella.no_grad():
        plain = self.detach()
        rows: list[tuple[str, object]] = [
            ("shape", tuple(self.shape)),
            ("dtype", str(self.dtype).partition(".")[2]),
            ("memory", f"{self.numel() * self.element_size():,} bytes"),
        ]
        if not self.is_complex() and self.dtype != lamella.bool:
            numbers = plain.to(lamella.float64)
            if self.is_floating_point():
                finite = numbers[lamella.isfinite(numbers)]
                rows.append(("not finite", numbers.numel() - finite.numel()))
                numbers = finite
            if numbers.numel():
                for name in ("min", "mean", "max"):
                    rows.append((name, f"{getattr(numbers, name)().item():.6g}"))
    names, values = zip(*rows)
    return f"{table(names, [values])}<pre>{html.escape(repr(self))}</pre>"


def of_module(self: Any) -> str:
    """The tree of modules, each with its own parameters; those inside open at a click."""
    title = f"{self._get_name()}({html.escape(self.extra_repr())})"
    count = sum(parameter.numel() for parameter in self.parameters())
    own = [
        (name, tuple(p.shape), str(p.dtype).partition(".")[2], "yes" if p.requires_grad else "no")
        for name, p in self.named_parameters(recurse=False)
    ]
    inside = table(("parameter", "shape", "dtype", "requires_grad"), own) if own else ""
    inside += "".join(
        f"<li>{html.escape(name)}: {of_module(child)}</li>" for name, child in self.named_children()
    )
    return (
        f"<details open><summary><code>{title}</code>, {count:,} parameters</summary>"
        f"<ul style='list-style:none'>{inside}</ul></details>"
    )


def of_profile(self: Any) -> str:
    """The table by operator, the longest own time first."""
    rows = sorted(self.key_averages(), key=lambda row: -row.self_cpu_time_total)
    return table(
        ("name", "calls", "total µs", "own µs", "mean µs"),
        (
            (row.key, row.count, *(f"{n:.1f}" for n in (
                row.cpu_time_total, row.self_cpu_time_total, row.cpu_time)))
            for row in rows
        ),
    )  # fmt: skip
