"""Texts of HLO for the mutations of tests/fuzz/mutate.py, and edits that know the grammar."""

from __future__ import annotations

import pathlib
import random
import re

_, CALLED, PARAMETERS, *BODIES = (
    (pathlib.Path(__file__).with_name("hlo_seeds.txt").read_text()).strip().split("\n\n")
)


def texts() -> list[str]:
    whole = []
    for body in BODIES:
        head = "HloModule m"
        if "parameter(0)" not in body.split("\n")[0]:
            head, body = f"{head}, buffer_donor={{ (0, {{}}) }}", f"{PARAMETERS}\n{body}"
        whole.append(f"{head}\n{CALLED}\nENTRY main {{\n{body}\n}}\n")
    return whole


OPCODES = sorted(set(re.findall(r"([a-z][a-z0-9-]+)\(", "".join(BODIES)))) + ["add", "bitcast"]
ATTRIBUTES = re.findall(r", ([a-z_]+=(?:\{[^{}]*\}|[\w.+-]+))", "".join(BODIES))
SHAPES = ["f32[4]", "f32[]", "()", "(f32[4], f32[4])", "token[]", "s32[2,3]", "pred[4]", "f32[0]"]
SHAPES += ["f32[?]", "b(f32[4])", "((f32[4]), f32[4])", "c64[4]", "f32[<=4]"]


def changed(text: str, rng: random.Random) -> str:
    """The text with one to four calls, operands, attributes or shapes changed."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        line, kind = lines[at], rng.randrange(9)
        call = re.search(r"([a-z][\w-]*)\(([^()]*)\)", line.partition(" = ")[2])
        if kind == 0 and call:  # operands are left out
            kept = call[2].split(", ")[: rng.randint(0, 2)]
            line = line.replace(call[0], f"{call[1]}({', '.join(kept)})", 1)
        elif kind == 1 and call:
            line = line.replace(call[0], f"{call[1]}({call[2]}, {rng.choice('pqiz')})", 1)
        elif kind == 2 and call:
            line = line.replace(call[1] + "(", rng.choice(OPCODES) + "(", 1)
        elif kind == 3:
            line += ", " + rng.choice(ATTRIBUTES)
        elif kind == 4:  # an attribute is left out
            line = re.sub(r", [a-z_]+=(\{[^{}]*\}|[\w.+-]+)", "", line, count=1)
        elif kind == 5:
            line = re.sub(r"= [a-z0-9]+\[[^ ]*", f"= {rng.choice(SHAPES)}", line, count=1)
        elif kind == 6:  # another number
            numbers = list(re.finditer(r"\d+", line))
            if numbers:
                one = rng.choice(numbers)
                number = rng.choice(["0", "-1", "7", "65", "2147483648", "9223372036854775807"])
                line = line[: one.start()] + number + line[one.end() :]
        elif kind == 7:
            line = rng.choice(lines)
        else:
            line = re.sub(r"= [a-z0-9]+\[[^ ]* ", "= ", line, count=1)
        lines[at] = line
    return "\n".join(lines)
