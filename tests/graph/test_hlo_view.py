"""Modules as JSON, DOT and HTML, and differences between two modules."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jax_programs import programs

hlo = pytest.importorskip("lamella.hlo")

ROOT = Path(__file__).resolve().parent.parent.parent

SMALL = """HloModule small, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[]}

FileNames
1 "model.py"

FunctionNames
1 "<module>"
2 "loss"

FileLocations
1 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=1 end_column=5}
2 {file_name_id=1 function_name_id=2 line=4 end_line=4 column=11 end_column=18}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


sum.1 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main.2 {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  z = f32[4]{0} multiply(x, y), metadata={op_name="jit(loss)/mul" stack_frame_id=2}
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(z, zero), dimensions={0}, to_apply=sum.1
}

"""

FUSED = """HloModule fused

inner {
  p = f32[8]{0} parameter(0)
  q = f32[8]{0} parameter(1)
  s = f32[8]{0} add(p, q)
  ROOT t = f32[8]{0} tanh(s)
}

ENTRY main {
  a = f32[8]{0} parameter(0)
  f = f32[8]{0} fusion(a, a), kind=kLoop, calls=inner
  ROOT n = f32[8]{0} negate(f)
}

"""


@pytest.fixture(scope="module")
def texts():
    """The texts that JAX exports, by name."""
    pytest.importorskip("jax")
    return {
        name: program.lowered.as_text("hlo", debug_info=True)
        for name, program in programs("functions").items()
    }


def test_texts_with_tables_of_sources_are_printed_as_they_were(texts):
    wrong = [name for name, text in texts.items() if hlo.parse(text).to_string() != text]
    assert wrong == []
    assert any("StackFrames" in text for text in texts.values())


def test_json_reads_back_as_the_same_text(texts):
    assert len(texts) >= 150
    for name, text in {**texts, "small": SMALL, "fused": FUSED}.items():
        module = hlo.parse(text)
        written = module.to_json()
        assert hlo.from_json(written).to_string() == module.to_string(), name
        assert hlo.from_json(module.to_json(-1)).to_string() == module.to_string(), name


def test_what_json_says():
    made = json.loads(hlo.parse(SMALL).to_json())
    assert made["format"] == "lamella.hlo" and made["version"] == 1
    assert made["entry"] == "main.2"
    assert made["entry_layout"] == {"parameters": ["f32[4]{0}", "f32[4]{0}"], "result": "f32[]"}
    entry = made["computations"][1]
    assert entry["root"] == "r"
    assert entry["instructions"][2] == {
        "name": "z",
        "opcode": "multiply",
        "shape": "f32[4]{0}",
        "operands": ["x", "y"],
        "attributes": {"metadata": '{op_name="jit(loss)/mul" stack_frame_id=2}'},
        "bytes": 16,
        "cost": {"flops": 4, "transcendentals": 0, "bytes": 48},
        "metadata": {"op_name": "jit(loss)/mul", "stack_frame_id": "2"},
    }
    assert entry["instructions"][4]["attributes"] == {"dimensions": [0], "to_apply": "sum.1"}


def test_json_of_every_kind_of_attribute():
    text = """HloModule kinds, input_output_alias={ {0}: (1, {}, may-alias) }, more={a="b"}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}

ENTRY main {
  i = f32[1,8,8,3]{3,2,1,0} parameter(0)
  p = f32[4]{0} parameter(1)
  e = f32[] constant(nan)
  v = f32[4]{0} sort(p), dimensions={0}, is_stable=true, to_apply=less
  d = f32[9]{0} pad(p, e), padding=0_2_1
  s = f32[2]{0} slice(p), slice={[0:4:2]}
  n = f32[4]{0} custom-call(p), custom_call_target="t\\"\\377", LAYOUT, control-predecessors={v}
  ROOT t = (f32[4]{0}, f32[9]{0}, f32[2]{0}, f32[4]{0}) tuple(v, d, s, n)
}

"""
    text = text.replace(
        "LAYOUT",
        "operand_layout_constraints={f32[4]{0}}, output_to_operand_aliasing={{}: (0, {})}",
    )
    text = text.replace(
        "  d = f32[9]",
        "  w = f32[3,3,3,5]{3,2,1,0} broadcast(e), dimensions={}\n"
        "  o = f32[1,4,4,5]{3,2,1,0} convolution(i, w), window={size=3x3 stride=2x2 pad=0_1x0_1}, "
        "dim_labels=b01f_01io->b01f\n"
        "  d = f32[9]",
    )
    module = hlo.parse(text)
    assert module.to_string() == text
    assert hlo.from_json(module.to_json()).to_string() == text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda m: m["computations"][1]["instructions"][2].update(opcode="multiplied"),
            "hlo: json: computations[1].instructions[2].opcode: expected an opcode, "
            'got "multiplied"',
        ),
        (
            lambda m: m["computations"][1]["instructions"][2].update(operands=["x", "r"]),
            "hlo: json: computations[1].instructions[2].operands[1]: expected the name of an "
            'instruction before it, got "r"',
        ),
        (
            lambda m: m["computations"][1]["instructions"][4]["attributes"].update(dimensions=0),
            "hlo: json: computations[1].instructions[4].attributes.dimensions: expected a list, "
            "got 0",
        ),
        (
            lambda m: m["computations"][1]["instructions"][4]["attributes"].update(to_apply="x"),
            "hlo: json: computations[1].instructions[4].attributes.to_apply: expected the name of "
            'a computation, got "x"',
        ),
        (
            lambda m: m["computations"][1]["instructions"][2].update(shape="f32[5]{0}"),
            "hlo: 'z' (multiply): expected the shape to be f32[4], got f32[5]",
        ),
        (
            lambda m: m.update(version=2),
            "hlo: json: version: expected 1, got 2",
        ),
        (
            lambda m: m.pop("entry"),
            "hlo: json: the module: expected a value for 'entry', got ",
        ),
    ],
)
def test_errors_of_json_say_where(change, said):
    made = json.loads(hlo.parse(SMALL).to_json())
    change(made)
    with pytest.raises(RuntimeError) as caught:
        hlo.from_json(json.dumps(made))
    assert str(caught.value).startswith(said)


def test_what_is_no_json_is_an_error_with_its_place():
    with pytest.raises(RuntimeError, match=r"^hlo: json: parse error at line 1, column 2"):
        hlo.from_json("{")


@pytest.mark.parametrize(
    ("line", "cost"),
    [
        ("dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", (2 * 4 * 6 * 5, 0, 296)),
        ("tanh(a)", (0, 24, 192)),
        ("slice(a), slice={[0:2], [0:3]}", (0, 0, 48)),
        ("reduce(a, z), dimensions={1}, to_apply=sum", (24 - 4, 0, 96 + 4 + 16)),
        ("fusion(a), kind=kLoop, calls=twice", (48, 24, 192)),
        ("while(a), condition=go, body=twice", (48 + 1, 24, 3 * 192 + 9)),
        ("broadcast(z), dimensions={}", (0, 0, 4 + 96)),
    ],
)
def test_costs(line, cost):
    shapes = {"dot": "f32[4,5]{1,0}", "slice": "f32[2,3]{1,0}", "reduce": "f32[4]{0}"}
    shape = shapes.get(line.split("(")[0], "f32[4,6]{1,0}")
    text = f"""HloModule m

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

twice {{
  a = f32[4,6]{{1,0}} parameter(0)
  b = f32[4,6]{{1,0}} negate(a)
  c = f32[4,6]{{1,0}} tanh(b)
  ROOT d = f32[4,6]{{1,0}} abs(c)
}}

go {{
  a = f32[4,6]{{1,0}} parameter(0)
  k = f32[] constant(0)
  ROOT b = pred[] compare(k, k), direction=LT
}}

ENTRY main {{
  a = f32[4,6]{{1,0}} parameter(0)
  b = f32[6,5]{{1,0}} parameter(1)
  z = f32[] parameter(2)
  ROOT r = {shape} {line}
}}

"""
    made = json.loads(hlo.parse(text).to_json())
    entry = next(one for one in made["computations"] if one["name"] == "main")
    said = entry["instructions"][-1]["cost"]
    assert (said["flops"], said["transcendentals"], said["bytes"]) == cost


# ---- DOT ----


def test_dot_of_a_fusion_is_a_cluster_in_its_place():
    made = hlo.parse(FUSED).to_dot()
    assert made.count("subgraph cluster_") == 2
    assert "i1_1 " not in made  # the fusion itself has no box
    edges = re.findall(r"^  (\w+) -> (\w+)", made, re.MULTILINE)
    assert ("i1_0", "i0_0") in edges and ("i1_0", "i0_1") in edges  # into its parameters
    assert ("i0_3", "i1_2") in edges  # from its root
    assert 'label="f32[8]"' in made


def test_graphviz_reads_dot(texts):
    dot = shutil.which("dot")
    if dot is None:
        pytest.skip("Graphviz is not installed")
    some = {**texts, "small": SMALL, "fused": FUSED}
    for name in ["small", "fused", *sorted(texts)[::40]]:
        done = subprocess.run(
            [dot, "-Tplain"],
            input=hlo.parse(some[name]).to_dot(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 and done.stderr == "", (name, done.stderr)


def test_dot_is_well_formed(texts):
    for name, text in texts.items():
        module = hlo.parse(text)
        made = module.to_dot()
        boxes = set(re.findall(r"^\s+(i\d+_\d+) \[", made, re.MULTILINE))
        for start, end in re.findall(r"^  (\w+) -> (\w+) ", made, re.MULTILINE):
            assert start in boxes and end in boxes, name
        assert len(boxes) == module.instruction_count
        assert made.count("{") == made.count("}") or '"' in made


# ---- HTML ----


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.items, self.data, self.outside = [], 0, "", []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "li":
            self.items += 1
        self.outside += [v for k, v in attrs.items() if k in ("src", "href") and v[:1] != "#"]
        self.open.append((tag, attrs.get("id")))

    def handle_data(self, data):
        if self.open and self.open[-1] == ("script", "data"):
            self.data += data


def test_html_needs_nothing_else_and_lists_everything(texts):
    for name, text in {**texts, "small": SMALL, "fused": FUSED}.items():
        module = hlo.parse(text)
        made = module.to_html()
        page = Page()
        page.feed(made)
        assert page.outside == [], name
        assert page.items == module.instruction_count, name
        data = json.loads(page.data)
        assert len(data["computations"]) == len(module.computations)
        for computation in data["computations"]:
            for one in computation["instructions"]:
                assert one["b"] >= 0 and len(one["k"]) == 3 and min(one["k"]) >= 0


def test_html_says_source_cost_and_buffer():
    page = Page()
    page.feed(hlo.parse(SMALL).to_html())
    one = json.loads(page.data)["computations"][1]["instructions"][2]
    assert one["w"] == "model.py:4 (loss)" and one["m"] == "jit(loss)/mul"
    assert one["b"] == 16 and one["k"] == [4, 0, 48]


def test_html_of_hostile_names_is_escaped():
    text = (
        "HloModule m\n\nENTRY e {\n"
        '  ROOT r = f32[] custom-call(), custom_call_target="</script><b>&"\n}\n'
    )
    made = hlo.parse(text).to_html()
    assert "</script><b>" not in made and "<b>&" not in made


def test_layout_of_large_graphs():
    """Boxes do not overlap, edges lead downwards, and thousands of boxes take moments."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    program = """
    const { layered } = require(process.argv[1]);
    let state = 7;
    const random = (n) => (state = (state * 48271) % 2147483647) % n;
    for (const count of [1, 2, 30, 400, 2500]) {
      const boxes = [];
      for (let i = 0; i < count; ++i) {
        const inputs = [];
        for (let k = i === 0 ? 0 : random(3); k > 0; --k) {
          inputs.push(random(8) === 0 ? random(i) : Math.max(0, i - 1 - random(6)));
        }
        boxes.push({ w: 40 + random(200), h: random(20) === 0 ? 300 : 53, inputs });
      }
      const begin = Date.now();
      const made = layered(boxes);
      if (Date.now() - begin > 5000) throw new Error(`slow: ${Date.now() - begin} ms`);
      made.boxes.forEach((a, i) => {
        const inside = a.x >= -0.01 && a.y >= 0 && a.x + boxes[i].w <= made.w + 0.01;
        if (!inside) throw new Error('outside');
        made.boxes.forEach((b, j) => {
          if (j <= i) return;
          const apart = a.x + boxes[i].w < b.x || b.x + boxes[j].w < a.x ||
                        a.y + boxes[i].h < b.y || b.y + boxes[j].h < a.y;
          if (!apart) throw new Error(`boxes ${i} and ${j} overlap`);
        });
      });
      let edges = 0;
      for (const box of boxes) edges += box.inputs.length;
      if (made.edges.length !== edges) throw new Error('edges');
      for (const { from, to, d } of made.edges) {
        if (made.boxes[from].y + boxes[from].h >= made.boxes[to].y) throw new Error('upwards');
        if (/NaN|undefined/.test(d)) throw new Error(d);
      }
    }
    console.log('good');
    """
    layout = ROOT / "lamella" / "graph" / "view" / "page_layout.js"
    done = subprocess.run(
        [node, "-e", program, str(layout)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "good\n", done.stderr[-600:]


# ---- Differences ----


def test_a_module_is_equal_to_itself_and_to_its_renamed_self(texts):
    for name, text in texts.items():
        module = hlo.parse(text)
        assert module.diff(hlo.parse(text)) == "", name
        # Names of instructions end in a number.
        other = re.sub(r"(?m)^(\s+(?:ROOT )?)([\w.-]+) = ", r"\1renamed_\2 = ", text)
        names = re.findall(r"(?m)^\s+(?:ROOT )?([\w.-]+) = ", text)
        for one in sorted(set(names), key=len, reverse=True):
            other = re.sub(rf"(?<=[(, ]){re.escape(one)}(?=[),])", f"renamed_{one}", other)
        try:
            renamed = hlo.parse(other)
        except RuntimeError:
            continue  # a name that is something else, too
        assert module.diff(renamed) == "", name


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "multiply(x, y)",
            "divide(x, y)",
            "main.2:\n"
            "  - z = f32[4]{0} multiply(x, y)\n"
            "  ~ r: operand 0: z -> z\n"
            "  + z = f32[4]{0} divide(x, y)\n"
            "1 removed, 1 added, 1 changed, 6 equal\n",
        ),
        (
            "multiply(x, y)",
            "multiply(x, x)",
            "main.2:\n  ~ z: operand 1: y -> x\n0 removed, 0 added, 1 changed, 7 equal\n",
        ),
        (
            "constant(0)",
            "constant(1)",
            "main.2:\n  ~ zero: value 0 -> 1\n0 removed, 0 added, 1 changed, 7 equal\n",
        ),
        (
            "ROOT c = f32[] add(a, b)",
            "ROOT c = f32[] maximum(a, b)",
            "sum.1:\n"
            "  - c = f32[] add(a, b)\n"
            "  + c = f32[] maximum(a, b)\n"
            "  root: c -> c\n"
            "1 removed, 1 added, 0 changed, 7 equal\n",
        ),
    ],
)
def test_differences_are_named(old, new, said):
    other = SMALL.replace(old, new)
    assert hlo.parse(SMALL).diff(hlo.parse(other)) == said


def test_differences_of_aliases():
    text = "HloModule m\n\nENTRY e {\n  ROOT p = f32[2]{0} parameter(0)\n}\n"
    other = text.replace(
        "HloModule m", "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }"
    )
    assert hlo.parse(text).diff(hlo.parse(other)) == (
        "module: input_output_alias none -> {}: (0, {}, must-alias)\n"
        "0 removed, 0 added, 1 changed, 1 equal\n"
    )
