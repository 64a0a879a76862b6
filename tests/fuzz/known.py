"""known_differences.txt: known differences between Lamella and PyTorch, with reasons.

A line `OPERATOR KIND CALL: reason` says that call number CALL under seed 0 shows such a difference.
A line whose call does not show it any more fails the tests, so that the list can only shrink. Where
rounding may agree, the reason begins with `on some machines`: such a line is always needed.
"""

from __future__ import annotations

from pathlib import Path

SEED = 0
_ON_SOME_MACHINES = "on some machines"
_PATH = Path(__file__).parent / "known_differences.txt"


class KnownDifferences:
    def __init__(self) -> None:
        self.head: list[str] = []
        self.lines: dict[tuple[str, str], tuple[int, str]] = {}
        for line in _PATH.read_text().splitlines() if _PATH.exists() else ():
            if not line or line.startswith("#"):
                self.head.append(line)
                continue
            words, _, reason = line.partition(": ")
            op, kind, call = words.split(" ")
            self.lines[op, kind] = (int(call), reason)

    @staticmethod
    def kind(text: str) -> str:
        """ "accepts" of "accepts: ValueError: ..."."""
        return text.partition(":")[0]

    def has(self, op: str, text: str) -> bool:
        return (op, self.kind(text)) in self.lines

    def calls(self, op: str) -> list[int]:
        return sorted({call for (name, _), (call, _) in self.lines.items() if name == op})

    def not_needed(self, found: set[tuple[str, str, int]]) -> list[str]:
        """Lines whose call shows no such difference among (operator, kind, call)."""
        return [
            f"{op} {kind} {call}: {reason}"
            for (op, kind), (call, reason) in self.lines.items()
            if reason.startswith("?")
            or ((op, kind, call) not in found and not reason.startswith(_ON_SOME_MACHINES))
        ]

    def write(self, found: dict[tuple[str, str], tuple[int, str]]) -> None:
        """The list as it is needed, with the reasons that it has; others are to be written."""
        lines = list(self.head)
        kept = {key: row for key, row in self.lines.items() if row[1].startswith(_ON_SOME_MACHINES)}
        new = {
            (op, kind): (call, self.lines.get((op, kind), (0, f"? {text}"))[1])
            for (op, kind), (call, text) in found.items()
        }
        for (op, kind), (call, reason) in sorted({**kept, **new}.items()):
            lines.append(f"{op} {kind} {call}: {reason}")
        _PATH.write_text("\n".join(lines) + "\n")
