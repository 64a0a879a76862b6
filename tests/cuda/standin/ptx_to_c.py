"""Compiles PTX to a library of the host, for the stand-in: ptx_to_c.py IN.ptx OUT.so

It knows what LLVM's NVPTX writes for programs; any other instruction is an error that names it.
Each kernel becomes a function of one thread, void kernel(const char *parameters, const struct host
*h). Registers hold bits. Each access is checked by the stand-in, which says where the host sees it.
"""

from __future__ import annotations

import re
import subprocess
import sys

PRELUDE = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
struct host {
  uint32_t (*special)(int which);
  char *(*reach)(uint64_t address, uint32_t bytes, int written, int line);
  void (*barrier)(int line);
  uint32_t (*exchange)(uint32_t mask, uint32_t value, uint32_t lane, int line);
};
#define BITS(T, U, from, to) \
  static inline T from(U bits) { T x; memcpy(&x, &bits, sizeof x); return x; } \
  static inline U to(T x) { U bits; memcpy(&bits, &x, sizeof x); return bits; }
BITS(_Float16, uint16_t, as_f16, of_f16)
BITS(float, uint32_t, as_f32, of_f32)
BITS(double, uint64_t, as_f64, of_f64)
#define EXTREMES(T, suffix, sign) \
  static inline T max_##suffix(T x, T y) { \
    if (x != x) return y; if (y != y) return x; \
    return x > y || (x == y && !sign(x)) ? x : y; } \
  static inline T min_##suffix(T x, T y) { \
    if (x != x) return y; if (y != y) return x; \
    return x < y || (x == y && sign(x)) ? x : y; } \
  static inline T max_nan_##suffix(T x, T y) { \
    return x != x || y != y ? (T)NAN : max_##suffix(x, y); } \
  static inline T min_nan_##suffix(T x, T y) { \
    return x != x || y != y ? (T)NAN : min_##suffix(x, y); }
EXTREMES(_Float16, f16, signbit)
EXTREMES(float, f32, signbit)
EXTREMES(double, f64, signbit)
#define TO_INTEGER(I, name, low, high) \
  static inline I name(double x) { \
    if (x != x) return 0; if (x <= low) return (I)low; if (x >= high) return (I)-1 > 0 ? (I)-1 : \
    (I)(((uint64_t)1 << (sizeof(I) * 8 - 1)) - 1); return (I)x; }
TO_INTEGER(int8_t, to_s8, -128.0, 127.0)
TO_INTEGER(int16_t, to_s16, -32768.0, 32767.0)
TO_INTEGER(int32_t, to_s32, -2147483648.0, 2147483647.0)
TO_INTEGER(int64_t, to_s64, -9223372036854775808.0, 9223372036854775807.0)
TO_INTEGER(uint8_t, to_u8, 0.0, 255.0)
TO_INTEGER(uint16_t, to_u16, 0.0, 65535.0)
TO_INTEGER(uint32_t, to_u32, 0.0, 4294967295.0)
TO_INTEGER(uint64_t, to_u64, 0.0, 18446744073709551615.0)
static inline uint32_t permuted(uint32_t a, uint32_t b, uint32_t select) {
  uint64_t both = (uint64_t)b << 32 | a; uint32_t made = 0;
  for (int n = 0; n < 4; ++n) {
    uint32_t which = select >> 4 * n & 15, byte = both >> 8 * (which & 7) & 255;
    made |= (which & 8 ? byte & 128 ? 255u : 0u : byte) << 8 * n;
  }
  return made;
}
"""
SPECIAL = {"%tid.x": 0, "%ctaid.x": 1, "%ntid.x": 2, "%nctaid.x": 3}
ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%"}
LOGIC = {"and": "&", "or": "|", "xor": "^"}
ROUNDED = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


class Unknown(Exception):
    pass


def bits_of(kind: str) -> int:
    return 8 if kind == "pred" else int(kind[1:].removesuffix("x2"))


def c_type(kind: str) -> str:
    if kind == "pred":
        return "uint8_t"
    if kind[0] == "f":
        return {"f16": "_Float16", "f32": "float", "f64": "double"}[kind]
    return ("int" if kind[0] == "s" else "uint") + f"{bits_of(kind)}_t"


def plain(name: str) -> str:
    return re.sub(r"[%$]", "", name).replace(".", "_")


class Kernel:
    def __init__(self, name: str, symbols: dict[str, str]):
        self.name, self.symbols = name, symbols
        self.lines: list[str] = []

    def bits(self, operand: str) -> str:
        """The bits of an operand."""
        if operand in SPECIAL:
            return f"h->special({SPECIAL[operand]})"
        if operand in self.symbols:
            return f"((uint64_t){self.symbols[operand]})"
        if re.match(r"0[fd][0-9A-F]+$", operand):
            return f"0x{operand[2:]}ull"
        if re.match(r"-?\d|0x", operand):
            number = int(operand, 0)
            return f"{number & (1 << 64) - 1:#x}ull"
        return plain(operand)

    def value(self, operand: str, kind: str) -> str:
        if kind[0] == "f":
            return f"as_{kind}({self.bits(operand)})"
        return f"(({c_type(kind)}){self.bits(operand)})"

    def set(self, operand: str, kind: str, expression: str) -> None:
        if kind[0] == "f":
            expression = f"of_{kind}({expression})"
        elif kind == "pred":
            expression = f"({expression}) & 1"
        else:
            expression = f"({c_type(kind)})({expression})"
        self.lines.append(f"{plain(operand)} = {expression};")

    def address(self, operand: str) -> str:
        base, _, offset = operand.strip("[]").partition("+")
        return f"{self.bits(base)} + {offset or 0}"

    def memory(self, parts: list[str], operands: list[str], number: int) -> None:
        is_load, kind = parts[0] == "ld", parts[-1]
        registers, at = operands if is_load else operands[::-1]
        names = [one.strip() for one in registers.strip("{}").split(",")]
        each = bits_of(kind) // 8
        space = next((one for one in ("global", "param", "shared", "local") if one in parts), "")
        if space == "param":
            reach = f"(char *)({self.address(at)})"
        elif space == "global":
            whole, written = each * len(names), int(not is_load)
            reach = f"h->reach({self.address(at)}, {whole}, {written}, {number})"
            if is_load:
                here = self.address(at)
                reach = f"IS_CONSTANT({here}, {whole}) ? (char *)({here}) : {reach}"
        elif space in ("shared", "local"):
            reach = f"WITHIN({space}_memory, {self.address(at)}, {each * len(names)}, {number})"
        else:
            raise Unknown(".".join(parts))
        self.lines.append(f"{{ char *at = {reach};")
        for n, name in enumerate(names):
            if is_load:
                loaded = f"({{ {c_type(kind.replace('f', 'u').replace('b', 'u'))} x;"
                self.set(name, kind.replace("f", "u").replace("b", "u"),
                         f"{loaded} memcpy(&x, at + {n * each}, {each}); x; }})")  # fmt: skip
            else:
                self.lines.append(f"memcpy(at + {n * each}, &{plain(name)}, {each});")
        self.lines.append("}")

    def move(self, kind: str, to: str, source: str) -> None:
        if to.startswith("{"):
            names = [one.strip() for one in to.strip("{}").split(",")]
            self.lines.append(f"{{ uint64_t whole = {self.bits(source)};")
            for n, name in enumerate(names):
                if name != "_":
                    by = n * bits_of(kind) // len(names)
                    self.lines.append(f"{plain(name)} = whole >> {by};")
            self.lines.append("}")
        elif source.startswith("{"):
            names = [one.strip() for one in source.strip("{}").split(",")]
            each = bits_of(kind) // len(names)
            mask = (1 << each) - 1
            whole = " | ".join(
                f"((uint64_t){self.bits(one)} & {mask:#x}ull) << {n * each}"
                for n, one in enumerate(names)
            )
            self.lines.append(f"{plain(to)} = {whole};")
        else:
            self.lines.append(f"{plain(to)} = {self.bits(source)};")

    def convert(self, parts: list[str], to: str, source: str) -> None:
        into, kind = parts[-2:]
        rounding = next((ROUNDED[one] for one in parts if one in ROUNDED), None)
        if "sat" in parts or "ftz" in parts:
            raise Unknown(".".join(parts))
        x = self.value(source, kind)
        if kind[0] == "f" and into[0] != "f":
            if rounding is None:
                raise Unknown(".".join(parts))
            if into in ("s64", "u64") and kind == "f64" or into[1:] != "64":
                x = f"to_{into}({rounding}({x}))"
            else:
                x = f"to_{into}({rounding}((double){x}))"
        elif rounding is not None:
            x = f"{rounding}({x})"
        else:
            x = f"({c_type(into)}){x}"
        self.set(to, into, x)

    def statement(self, text: str, number: int) -> None:
        guard = ""
        if text.startswith("@"):
            which, text = text[1:].split(None, 1)
            guard = f"if ({'!' if which[0] == '!' else ''}{plain(which.lstrip('!'))}) "
        opcode, _, rest = text.partition(" ")
        parts = opcode.split(".")
        operands = [one.strip() for one in re.split(r",(?![^{\[]*[}\]])", rest)] if rest else []
        kind = parts[-1]
        if guard:
            self.lines.append(guard + "{")
        self.instruction(parts, kind, operands, number)
        if guard:
            self.lines.append("}")

    def instruction(self, parts: list[str], kind: str, o: list[str], number: int) -> None:
        name = parts[0]
        is_float = kind[0] == "f"
        if kind == "f16x2":
            self.halves(parts, o, number)
        elif name == "ret":
            self.lines.append("return;")
        elif name == "bra":
            self.lines.append(f"goto {plain(o[0])};")
        elif parts == ["bar", "sync"]:
            self.lines.append(f"h->barrier({number});")
        elif parts[:3] == ["shfl", "sync", "bfly"] and o[3] == "31":
            self.lines.append(
                f"{plain(o[0])} = h->exchange({self.bits(o[4])}, {self.bits(o[1])},"
                f" (h->special(0) & 31) ^ {self.bits(o[2])}, {number});"
            )
        elif name in ("ld", "st"):
            self.memory(parts, o, number)
        elif name == "mov":
            self.move(kind, *o)
        elif name == "cvta":
            self.lines.append(f"{plain(o[0])} = {self.bits(o[1])};")
        elif name == "cvt":
            self.convert(parts, *o)
        elif name == "setp":
            self.compare(parts, kind, o)
        elif name == "selp":
            self.lines.append(
                f"{plain(o[0])} = {plain(o[3])} ? {self.bits(o[1])} : {self.bits(o[2])};"
            )
        elif name in LOGIC:
            self.lines.append(f"{plain(o[0])} = {self.bits(o[1])} {LOGIC[name]} {self.bits(o[2])};")
        elif name == "not":
            one = "!" if kind == "pred" else "~"
            self.lines.append(f"{plain(o[0])} = {one}{self.bits(o[1])};")
        elif name in ("mul", "mad") and ("wide" in parts or "hi" in parts):
            wide = f"{'__' if bits_of(kind) == 64 else ''}int{2 * bits_of(kind)}"
            wide = ("" if kind[0] == "s" else "unsigned " if wide[0] == "_" else "u") + wide
            wide += "" if wide.endswith("int128") else "_t"
            x = f"({wide}){self.value(o[1], kind)} * ({wide}){self.value(o[2], kind)}"
            if "hi" in parts:
                x = f"({x}) >> {bits_of(kind)}"
            if name == "mad":
                x = f"({x}) + {self.bits(o[3])}"
            self.lines.append(f"{plain(o[0])} = {x};")
        elif name == "mad" or (name == "fma" and not is_float):
            x = f"{self.value(o[1], 'u64')} * {self.value(o[2], 'u64')} + {self.bits(o[3])}"
            self.set(o[0], kind, x)
        elif name == "fma" and kind in ("f32", "f64"):
            x = [self.value(one, kind) for one in o[1:]]
            self.set(o[0], kind, f"__builtin_fma{'f' if kind == 'f32' else ''}({', '.join(x)})")
        elif name in ARITHMETIC and (is_float or name in ("div", "rem")):
            if is_float and not {"rn", "f16"} & set(parts):
                raise Unknown(".".join(parts))
            x = f"{self.value(o[1], kind)} {ARITHMETIC[name]} {self.value(o[2], kind)}"
            self.set(o[0], kind, x)
        elif name in ("add", "sub", "mul"):
            x = f"{self.value(o[1], 'u64')} {ARITHMETIC[name]} {self.value(o[2], 'u64')}"
            self.set(o[0], kind, x)
        elif name in ("min", "max"):
            self.extreme(parts, kind, o)
        elif name in ("neg", "abs") and is_float:
            sign = 1 << (bits_of(kind) - 1)
            change = f"^ {sign:#x}ull" if name == "neg" else f"& {sign - 1:#x}ull"
            self.lines.append(f"{plain(o[0])} = {self.bits(o[1])} {change};")
        elif name == "neg":
            self.set(o[0], kind, f"-{self.value(o[1], 'u64')}")
        elif name == "abs":
            x = self.value(o[1], kind)
            self.set(o[0], kind, f"{x} < 0 ? -(uint64_t){x} : (uint64_t){x}")
        elif parts[:2] == ["sqrt", "rn"]:
            self.set(o[0], kind, f"sqrt{'f' if kind == 'f32' else ''}({self.value(o[1], kind)})")
        elif parts[:2] == ["rcp", "rn"]:
            self.set(o[0], kind, f"1 / {self.value(o[1], kind)}")
        elif name == "copysign":
            sign = 1 << (bits_of(kind) - 1)
            self.lines.append(
                f"{plain(o[0])} = ({self.bits(o[1])} & {sign:#x}ull) |"
                f" ({self.bits(o[2])} & {sign - 1:#x}ull);"
            )
        elif name in ("shl", "shr"):
            self.shift(name, kind, o)
        elif name == "shf" and "wrap" in parts:
            both = f"(({self.value(o[2], 'u64')} << 32) | {self.value(o[1], 'u32')})"
            by = f"({self.bits(o[3])} & 31)"
            left = parts[1] == "l"
            x = f"{both} << {by} >> 32" if left else f"{both} >> {by}"
            self.set(o[0], "b32".replace("b", "u"), x)
        elif name == "bfe" and kind[0] == "u":
            x = f"{self.value(o[1], kind)} >> ({self.bits(o[2])} & 63)"
            self.set(o[0], kind, f"({x}) & ((1ull << ({self.bits(o[3])})) - 1)")
        elif name == "bfe":
            left = f"(64 - ({self.bits(o[2])}) - ({self.bits(o[3])}))"
            x = f"{self.value(o[1], 'u64')} << {left}"
            self.set(o[0], kind, f"(int64_t)({x}) >> (64 - ({self.bits(o[3])}))")
        elif name == "bfi":
            value, into, at, length = (self.bits(one) for one in o[1:])
            mask = f"(((1ull << ({length})) - 1) << ({at}))"
            x = f"(((uint64_t){value} << ({at})) & {mask}) | ((uint64_t){into} & ~{mask})"
            self.lines.append(f"{plain(o[0])} = {x};")
        elif name == "prmt":
            self.set(o[0], "u32", f"permuted({', '.join(self.bits(one) for one in o[1:])})")
        elif name == "popc":
            self.set(o[0], "u32", f"__builtin_popcountll({self.value(o[1], 'u' + kind[1:])})")
        elif name == "clz":
            width = bits_of(kind)
            x = self.value(o[1], f"u{width}")
            self.set(o[0], "u32", f"{x} == 0 ? {width} : __builtin_clzll({x}) - {64 - width}")
        else:
            raise Unknown(".".join(parts))

    def halves(self, parts: list[str], o: list[str], number: int) -> None:
        """An instruction on two halves of a register, one after the other."""
        self.lines.append("{ uint16_t low, high;")
        to = o[0].split("|") if "|" in o[0] else ["low", "high"]
        for by, one in enumerate(to):
            given = [f"h{n}" for n in range(len(o) - 1)]
            values = [f"{name} = {self.bits(x)} >> {16 * by}" for name, x in zip(given, o[1:])]
            self.lines.append(f"{{ uint16_t {', '.join(values)};")
            self.instruction([*parts[:-1], "f16"], "f16", [one, *given], number)
            self.lines.append("}")
        if "|" not in o[0]:
            self.lines.append(f"{plain(o[0])} = low | (uint32_t)high << 16;")
        self.lines.append("}")

    def compare(self, parts: list[str], kind: str, o: list[str]) -> None:
        how, kind = parts[1], kind.replace("b", "u")
        x, y = self.value(o[1], kind), self.value(o[2], kind)
        unordered = f"({x} != {x} || {y} != {y})"
        if how in ("num", "nan"):
            made = unordered if how == "nan" else f"!{unordered}"
        elif how in ORDERED:
            made = f"{x} {ORDERED[how]} {y}"
            if how == "ne" and kind[0] == "f":
                made = f"({made}) && !{unordered}"
        elif how in UNSIGNED:
            made = f"{x} {UNSIGNED[how]} {y}"
        elif how.endswith("u") and how[:-1] in ORDERED:
            made = f"({x} {ORDERED[how[:-1]]} {y}) || {unordered}"
        else:
            raise Unknown(".".join(parts))
        combined = next((one for one in parts[2:-1] if one in LOGIC), None)
        if combined is not None:
            made = f"({made}) {LOGIC[combined]} {self.bits(o[3])}"
        self.set(o[0], "pred", made)

    def extreme(self, parts: list[str], kind: str, o: list[str]) -> None:
        x, y = self.value(o[1], kind), self.value(o[2], kind)
        if kind in ("f16", "f32", "f64"):
            nan = "nan_" if "NaN" in parts else ""
            self.set(o[0], kind, f"{parts[0]}_{nan}{kind}({x}, {y})")
        elif kind[0] in "us" and "x2" not in kind:
            sign = "<" if parts[0] == "min" else ">"
            self.set(o[0], kind, f"{x} {sign} {y} ? {x} : {y}")
        else:
            raise Unknown(".".join(parts))

    def shift(self, name: str, kind: str, o: list[str]) -> None:
        width = bits_of(kind)
        kind = kind.replace("b", "u")
        x, by = self.value(o[1], kind), self.value(o[2], "u32")
        if name == "shl":
            self.set(o[0], kind, f"{by} > {width - 1} ? 0 : {x} << {by}")
        elif kind[0] == "s":
            self.set(o[0], kind, f"{x} >> ({by} > {width - 1} ? {width - 1} : {by})")
        else:
            self.set(o[0], kind, f"{by} > {width - 1} ? 0 : {x} >> {by}")


def arrays(text: str, space: str, c_name: str) -> tuple[str, dict[str, str]]:
    """A structure of all arrays of a space, and their names in it."""
    fields, values, names = [], [], {}
    pattern = rf"\.{space} \.align (\d+) \.b8 ([\w$]+)\[(\d+)\](?: = \{{([^}}]*)\}})?"
    for align, name, count, numbers in re.findall(pattern, text):
        fields.append(f"uint8_t {plain(name)}[{count}] __attribute__((aligned({align})));")
        values.append(f"{{{numbers or 0}}}")
        names[name] = f"&{c_name}.{plain(name)}"
    fields.append("uint8_t end[1];")
    start = f" = {{{', '.join([*values, '{0}'])}}}" if space == "global" else ""
    return f"struct {{ {' '.join(fields)} }} {c_name}{start};", names


def translate(text: str) -> str:
    text = re.sub(r"//[^\n]*", "", text)
    out = [PRELUDE]
    outside = re.sub(r"(?s)\.visible \.entry.*?\n\}", "", text)
    if re.search(r"\.func|\.extern", outside):
        raise Unknown(".func")
    constants, symbols = arrays(outside, "global", "constants")
    out.append("static const " + constants)
    out.append(
        "#define IS_CONSTANT(at, bytes) ((at) - (uint64_t)&constants < sizeof constants &&"
        " (at) - (uint64_t)&constants + (bytes) <= sizeof constants)\n"
        "#define WITHIN(memory, address, bytes, line) ({ uint64_t where = (address);"
        " where - (uint64_t)&memory + (bytes) <= sizeof memory ? (char *)where"
        " : h->reach(1, bytes, 0, line); })"
    )
    pattern = r"(?s)\.visible \.entry ([\w$]+)\((.*?)\)(.*?)\n\{(.*?)\n\}"
    for name, _, _, body in re.findall(pattern, text):
        shared, own = arrays(outside + body, "shared", "shared_memory")
        local, depot = arrays(body, "local", "local_memory")
        kernel = Kernel(name, {**symbols, **own, **depot, f"{name}_param_0": "parameters"})
        out.append(f"void {name}(const char *parameters, const struct host *h) {{")
        out.append(f"static _Thread_local {shared} {local}")
        body = re.sub(r"\.(shared|local) \.align [^;]*;", "", body)
        for number, statement in enumerate(re.split(r";|(?<=:)\s*\n", body)):
            line = " ".join(statement.split())
            while line[:1] in ("{", "}"):
                kernel.lines.append(line[0])
                line = line[1:].strip()
            if re.match(r"[\w$]+:$", line):
                kernel.lines.append(f"{plain(line[:-1])}:;")
            elif line.startswith(".reg"):
                _, kind, *names = line.replace(",", " ").split()
                for one in names:
                    many = re.match(r"(%\w+)<(\d+)>$", one)
                    all_of = [f"{many[1]}{n}" for n in range(int(many[2]))] if many else [one]
                    made = f"{c_type('u' + str(bits_of(kind[1:])))}"
                    kernel.lines.append(f"{made} {', '.join(plain(n) for n in all_of)};")
            elif line and not line.startswith(".pragma"):
                kernel.statement(line, number)
        out += [*kernel.lines, "}"]
    return "\n".join(out) + "\n"


def main() -> int:
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    try:
        code = translate(text)
    except Unknown as error:
        print(f"standin: the PTX has an instruction that is not known: {error}", file=sys.stderr)
        return 1
    options = ["-O0", "-w", "-shared", "-fPIC", "-march=native", "-ffp-contract=off"]
    command = ["cc", *options, "-fno-strict-aliasing", "-x", "c", "-", "-o", target, "-lm"]
    return subprocess.run(command, input=code, text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
