"""XLA's grammar, text by text: what XLA's parser takes is taken and printed so that XLA reads it,
and what it refuses is refused. XLA's parser in jaxlib is the judge of every row."""

from __future__ import annotations

import faulthandler
import os
import re

import numpy as np
import pytest

import lamella
from lamella import hlo

xla = pytest.importorskip("jaxlib._hlo")


def theirs(text: str) -> str:
    """XLA's print of the text, or "refused: " and its error; it ends the process for some."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            said = xla.hlo_module_from_text(text).to_string()
        except Exception as error:
            said = f"refused: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said or "refused: XLA ended the process"


def module(body: str, before: str = "", header: str = "HloModule m") -> str:
    return f"{header}\n{before}\nENTRY e {{\n  p = f32[2,3] parameter(0)\n  {body}\n}}\n"


ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}"
PAIR = "((f32[2,3]), f32[2,3], u32[])"

TAKEN = {
    "no header": "ENTRY e {\n  ROOT p = f32[2] parameter(0)\n}",
    "no header, no entry": "e {\n  ROOT p = f32[2] parameter(0)\n}",
    "the last computation is the entry": "HloModule m\na {\n  x = f32[] parameter(0)\n}\n"
    "b {\n  y = s32[] parameter(0)\n}",
    "a colon behind the name": "HloModule m:\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}",
    "one instruction": "f32[2] add(f32[2] x, f32[2])",
    "one named instruction": 'y = f32[2] negate(f32[2] x), metadata={op_name="n"}',
    "one instruction with a computation": "f32[] reduce(f32[4] x, f32[] s), dimensions={0}, "
    "to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }",
    "shapes left out": module(
        "n = negate(p)\n  c = compare(p, n), direction=LT\n  s = select(c, p, n)\n"
        "  z = f32[] constant(0)\n  r = reduce(s, z), dimensions={1}, to_apply=add\n"
        "  t = transpose(p), dimensions={1,0}\n  d = dot(p, t), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}\n  ROOT u = tuple(r, d)",
        ADD,
    ),
    "shapes of calls left out": module(
        "z = f32[] constant(1)\n  c = call(z, z), to_apply=add\n"
        "  ROOT b = broadcast(c), dimensions={}",
        ADD,
    ),
    "nested operands": module(
        "ROOT y = f32[2,3] add(f32[2,3] negate(p), multiply(p, f32[2,3] broadcast(f32[] "
        "constant(2))))"
    ),
    "elided constants": module("ROOT c = f32[1000,1000] constant({...})"),
    "an elided tuple": module("ROOT c = (f32[4], s32[]) constant(({...}, 3))"),
    "elided after values": module("ROOT c = f32[2,3] constant({ { 1, 2, 3 }, ... })"),
    "a scalar for an array": module("ROOT c = f32[2,3] constant(5)"),
    "commas left out": module("ROOT c = f32[3] constant({1 2,,3})"),
    "a number for pred": module("ROOT c = pred[] constant(2)"),
    "-1 for u64": module("ROOT c = u64[2] constant({-1, 18446744073709551615})"),
    "2^64 - 1 for s64": module("ROOT c = s64[] constant(18446744073709551615)"),
    "NaN payloads": module("ROOT c = f32[4] constant({nan, -nan, nan(0x1), -nan(0x7fffff)})"),
    "NaN payloads of bf16": module("ROOT c = bf16[3] constant({nan(0x1), -nan(0x7f), nan})"),
    "rounding to the largest number": module("ROOT c = f16[2] constant({65519, -65504})"),
    "origin": module('ROOT n = f32[2,3] negate(p), origin={{"x" {0}}}'),
    "result_accuracy": module(
        "a = f32[2,3] exponential(p), result_accuracy={mode=highest}\n  ROOT b = f32[2,3] "
        "tanh(p), result_accuracy={tolerance={atol=1,rtol=0.5,ulps=2}}"
    ),
    "sparsity_config": module(
        "i = f32[1,4,4,2] parameter(1)\n  k = f32[2,2,2,1] parameter(2)\n  ROOT c = "
        "f32[1,3,3,1] convolution(i, k), window={size=2x2}, dim_labels=b01f_01io->b01f, "
        "sparsity_config={lhs={sparsity=1x4 dimension=1 stride=1}}, convolution_kind=fprop"
    ),
    "cross_program_prefetch_index": module(
        "c = (f32[2,3], f32[2,3], u32[]) copy-start(p), cross_program_prefetch_index=1\n"
        "  ROOT d = f32[2,3] copy-done(c)"
    ),
    "padding_type": module(
        'ROOT c = f32[2] custom-call(p), custom_call_target="t", padding_type=PADDING_VALID'
    ),
    "inferred_dimension": module("ROOT r = f32[3,2] reshape(p), inferred_dimension=0"),
    "mesh replica_groups": module(
        "ROOT r = f32[2,3] all-reduce(p), replica_groups=mesh['a'=2,'b'=2] {'b'}, to_apply=add", ADD
    ),
    "iota replica_groups": module(
        "ROOT r = f32[2,3] all-reduce(p), replica_groups=[2,4]<=[4,2]T(1,0), to_apply=add", ADD
    ),
    "literals of custom calls": module(
        'ROOT c = f32[2] custom-call(p), custom_call_target="t", '
        "literal=( s32[4]{0} {4, 128, 128, 3}, ( f32[] 0.1, pred[2]{0} {1, 0} ) )"
    ),
    "sizes without a bound": module("ROOT q = f32[?,784] parameter(1)"),
    "bounded sizes": module("ROOT q = f32[<=4,784] parameter(1)"),
    "a blank before a layout": module("ROOT q = f32[2,3] {0,1} negate(p)"),
    "tiles of layouts": module("ROOT q = f32[2,3]{1,0:T(8,128)(2,1)E(32)S(5)} negate(p)"),
    "buffers": module(
        'b = b(f32[2,3]) custom-call(p), custom_call_target="Pin"\n'
        '  ROOT u = f32[2,3] custom-call(b), custom_call_target="Unpin"'
    ),
    "labels without a part": module(
        'ROOT c = f32[2] custom-call(p), custom_call_target="t", '
        "dim_labels=b01f?_01i?o->b01f?, window={size=2x2}"
    ),
    "keywords as names": module("%true = f32[2,3] negate(p)\n  ROOT %nan = f32[2,3] negate(%true)"),
    "keywords as names of computations": module(
        "z = f32[] constant(1)\n  ROOT %inf = f32[] call(z, z), to_apply=%maximal",
        ADD.replace("add {", "%maximal {"),
    ),
    "set-dimension-size": module(
        "n = s32[] constant(2)\n  ROOT q = f32[2,<=3] set-dimension-size(p, n), dimensions={1}"
    ),
    "TopK": module('ROOT t = (f32[2,2], s32[2,2]) custom-call(p), custom_call_target="TopK"'),
    "shard barriers": module(
        'f = f32[2,3] custom-call(p), custom_call_target="ShardBarrierFrom", '
        "custom_call_has_side_effect=true\n"
        '  ROOT t = f32[2,3] custom-call(p), custom_call_target="ShardBarrierTo", '
        "custom_call_has_side_effect=true"
    ),
    "a sum of another type": module(
        "q = bf16[4] parameter(1)\n  ROOT r = f32[4] all-reduce(q), replica_groups={}, "
        "to_apply=add",
        ADD,
    ),
    "rng of three operands": module(
        "l = f32[] constant(0)\n  h = f32[] constant(1)\n  n = s64[2] constant({2, 3})\n"
        "  ROOT r = f32[2,3] rng(l, h, n), distribution=rng_uniform"
    ),
    "collective-permute between buffers": module(
        "o = f32[2,3] parameter(1)\n  z = s32[] constant(0)\n  t = (s32[], s32[]) tuple(z, z)\n"
        "  ROOT c = f32[2,3] collective-permute(p, o, t, t), source_target_pairs={{0,1}}, "
        "slice_sizes={{1,3}}"
    ),
    "branches in braces": module(
        "z = f32[] constant(1)\n  i = s32[] constant(0)\n  ROOT c = f32[] conditional(i, z), "
        "branch_computations={{ a = f32[] parameter(0) }}"
    ),
    "strings in single quotes": module(
        "ROOT c = f32[2] custom-call(p), custom_call_target='t', backend_config='{\"a\":1}'"
    ),
    "asynchronous chains": module(
        f'd = {PAIR} negate-start(p), async_execution_thread="t"\n'
        f"  u = {PAIR} negate-update(d)\n  ROOT r = f32[2,3] negate-done(u)"
    ),
    "attributes of the module": module(
        "ROOT n = f32[2,3] negate(p)",
        header="HloModule m, buffer_donor={ (0, {}) }, replica_count=2, num_partitions=2, "
        'alias_passthrough_params=true, frontend_attributes={a="b"}, '
        "allow_spmd_sharding_propagation_to_output={true}",
    ),
    "floats of several types": module(
        "h = bf16[2,3] convert(p)\n  a = bf16[2,3] add(p, h)\n  z = bf16[] constant(0)\n"
        "  ROOT w = f32[4,3] pad(p, z), padding=1_1x0_0"
    ),
    "a scatter whose sum is of another type": module(
        "i = s32[2,1] constant({{0}, {1}})\n  h = bf16[2,3] convert(p)\n"
        "  ROOT s = bf16[2,3] scatter(h, i, h), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        ADD,
    ),
    "a bitcast to fewer bytes": module("ROOT b = s32[1] bitcast(p)"),
    "a transform of another length": module(
        "c = c64[2,3] convert(p)\n  ROOT f = c64[2,3] fft(c), fft_type=FFT, fft_length={8}"
    ),
    "aliases of other shapes": module(
        "n = f32[2,3] negate(p)\n  ROOT r = f32[3,2] reshape(n)",
        header="HloModule m, input_output_alias={ {}: (0, {}) }",
    ),
    "aliases of a call": module(
        f"d = {PAIR} call-start(p), to_apply=n, output_to_operand_aliasing={{{{1}}: (0, {{}})}}\n"
        "  ROOT r = f32[2,3] call-done(d)",
        "n {\n  a = f32[2,3] parameter(0)\n  ROOT b = f32[2,3] negate(a)\n}",
    ),
    "a number for a large array": module("ROOT c = f32[32,197,3072] constant(5)"),
    **{
        f"sharding={{{one}}}": module(f"ROOT c = f32[2,3] copy(p), sharding={{{one}}}")
        for one in (
            "devices=[2,2]<=[2,2]T(1,0)",
            "devices=[2,1,2]0,1,2,3 last_tile_dim_replicate",
            "devices=[2,1,2]<=[4] last_tile_dims={manual}",
            "maximal device=3",
            "mesh['a'=2,'b'=2], [{'a','b'},{}]",
            "mesh['a'=4], [{'a':(1)2},{'a':(2)2}]",
            "mesh['a'=2,'b'=2], [{'a'},{?}], replicated={'b'}",
            "maximal_mesh[device_id=2]",
        )
    },
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_xla_takes_is_taken_and_printed_for_xla(name):
    text = TAKEN[name]
    expected = theirs(text)
    assert not expected.startswith("refused"), expected
    for verify in (True, False):
        ours = hlo.parse(text, verify=verify)
        for printed in (str(ours), ours.to_string(percent=True, operand_shapes=True)):
            again = theirs(printed)
            assert not again.startswith("refused"), f"{printed}\n{again}"
            if "..." not in text:
                assert entry_of(again) == entry_of(expected)
            assert str(hlo.parse(printed, verify=verify)) == str(ours)
        assert str(hlo.from_json(ours.to_json())) == str(ours)
        assert ours.to_dot() and ours.to_html()
        assert ours.diff(ours) == ""


def entry_of(text: str) -> str:
    """XLA's print of the instructions of the last computation, without names and layouts."""
    lines = text.strip().split("\n")
    start = max(n for n, line in enumerate(lines) if line.startswith("ENTRY"))
    shown = [line.split(" = ", 1)[-1].split("(")[0] for line in lines[start + 1 :]]
    return re.sub(r"\{[0-9,]*[^}]*\}", "", "\n".join(shown))


REFUSED = {
    "an operand's wrong shape": module("ROOT n = f32[2,3] negate(f32[3,2] p)"),
    "a computation's wrong result": "HloModule m\nENTRY e (p: f32[2]) -> f32[3] {\n  ROOT p = "
    "f32[2] parameter(0)\n}",
    "a type as name": module("%f32 = f32[2,3] negate(p)"),
    "a keyword as name": module("true = f32[2,3] negate(p)"),
    "a digit begins a name": module("1x = f32[2,3] negate(p)"),
    "two underscores begin a name": module("__x = f32[2,3] negate(p)"),
    "letters in a tile": module("n = f32[2,3]{1,0:T(8,1M)} negate(p)"),
    "semicolons": module("n = f32[2,3] negate(p);"),
    "an attribute of another opcode": module("n = f32[2,3] negate(p), dimensions={0}"),
    "a missing attribute": module("t = f32[3,2] transpose(p)"),
    "floats out of range": module("c = f16[1] constant({65520})"),
    "negative floats out of range": module("c = f16[1] constant({-1e6})"),
    "bf16 out of range": module("c = bf16[] constant(1e39)"),
    "f32 out of range": module("c = f32[] constant(1e39)"),
    "f64 out of range": module("c = f64[] constant(1e309)"),
    "f8e4m3fn out of range": module("c = f8e4m3fn[1] constant({465})"),
    "f8e8m0fnu below its range": module("c = f8e8m0fnu[2] constant({0, -1})"),
    "a real part out of range": module("c = c64[] constant((1e39, 0))"),
    "an imaginary part out of range": module("c = c64[] constant((0, -1e39))"),
    "a real number for a complex one": module("c = c64[] constant(2)"),
    "a NaN's payload out of range": module("c = f32[1] constant({nan(0x800000)})"),
    "a NaN's payload out of range for bf16": module("c = bf16[1] constant({nan(0x80)})"),
    "a NaN's payload of 0": module("c = f32[1] constant({nan(0x0)})"),
    "a NaN's payload in decimals": module("c = f32[1] constant({nan(1)})"),
    "a payload for f8e4m3fn": module("c = f8e4m3fn[1] constant({nan(0x1)})"),
    "-1 for u32": module("c = u32[] constant(-1)"),
    "an elided scalar": module("c = f32[] constant({...})"),
    "buffer_donor without a parameter": module(
        "n = f32[2,3] negate(p)", header="HloModule m, " "buffer_donor={ ({0}, {0}) }"
    ),
    "buffer_donor without an index": module(
        "n = f32[2,3] negate(p)", header="HloModule m, " "buffer_donor={ (0, 0) }"
    ),
    "an unknown api_version": module(
        'c = f32[2] custom-call(p), custom_call_target="t", api_version=API_VERSION_OTHER'
    ),
    "an unspecified api_version": module(
        'c = f32[2] custom-call(p), custom_call_target="t", api_version=API_VERSION_UNSPECIFIED'
    ),
    "layouts for fewer operands": module(
        'c = f32[2]{0} custom-call(p), custom_call_target="t", operand_layout_constraints={}'
    ),
    "a value of frontend_attributes": module("n = f32[2,3] negate(p), frontend_attributes={a=b}"),
    "use_global_device_ids alone": module(
        "r = f32[2,3] all-reduce(p), use_global_device_ids=true, to_apply=add", ADD
    ),
    "a chain of another operation": module(
        f"d = {PAIR} negate-start(p)\n  r = f32[2,3] abs-done(d)"
    ),
    "a chain of another thread": module(
        f"d = {PAIR} negate-start(p)\n"
        '  r = f32[2,3] negate-done(d), async_execution_thread="other"'
    ),
    "a chain of nothing": module("r = f32[2,3] negate-done(p)"),
    "an update of another shape": module(
        f"d = {PAIR} negate-start(p)\n  u = ((f32[2,3]), f32[3,2], u32[]) negate-update(d)\n"
        "  r = f32[2,3] negate-done(u)"
    ),
    "a start without operands' shapes": module("d = (f32[2,3], f32[2,3]) negate-start(p)"),
    "two starts of one computation": module(
        f"d = {PAIR} async-start(p), calls=n\n  f = {PAIR} async-start(p), calls=n\n"
        "  r = f32[2,3] async-done(d)\n  s = f32[2,3] async-done(f)",
        "n {\n  a = f32[2,3] parameter(0)\n  ROOT b = f32[2,3] negate(a)\n}",
    ),
    "a conditional's branches of the other kind": module(
        "z = f32[] constant(1)\n  i = pred[] constant(false)\n  c = f32[] conditional(i, z), "
        "branch_computations={{ a = f32[] parameter(0) }}"
    ),
    "reshapes of other sizes": module("r = f32[4] reshape(p)"),
    "levels of a layout": module("q = f32[2,3]{1,0:D(X,C)} negate(p)"),
    "an unknown accuracy": module("n = f32[2,3] tanh(p), result_accuracy={mode=high}"),
    "an accuracy without a name": module("n = f32[2,3] tanh(p), result_accuracy={0.5}"),
    "all-reduce-update": module("r = f32[2,3] all-reduce-update(p)"),
    "a gather along nothing": module(
        "g = f32[2,3] all-gather(p), replica_groups={}, dimensions={}"
    ),
    "a scatter along nothing": module(
        "g = f32[2,3] reduce-scatter(p), to_apply=add, dimensions={}", ADD
    ),
    "an exchange along two dimensions": module("a = f32[2,3] all-to-all(p), dimensions={0,1}"),
    "the size of no dimension": module("g = s32[] get-dimension-size(p), dimensions={}"),
    "a sort along two dimensions": module(
        "s = f32[2,3] sort(p), dimensions={0,1}, to_apply=add", ADD
    ),
    "an infeed of an array": module("t = token[] after-all()\n  i = f32[10] infeed(t)"),
    "an infeed of nothing": module("t = token[] after-all()\n  i = () infeed(t)"),
    "a recv of an array": module("t = token[] after-all()\n  i = f32[10] recv(t)"),
    "an element beyond the tuple": module(
        "t = (f32[2,3]) tuple(p)\n  g = get-tuple-element(t), index=1"
    ),
    "starts of too few dimensions": module(
        "d = f32[1,1] dynamic-slice(p), dynamic_slice_sizes={1,1}"
    ),
    **{
        f"sharding={{{one}}}": module(f"c = f32[2,3] copy(p), sharding={{{one}}}")
        for one in (
            "maximal",
            "device=1",
            "devices=[2,2]",
            "devices=[]<=[1]",
            "devices=[2,2]<=[2,2]T(1)",
            "replicated device=1",
            "unknown devices=[2]0,1",
            "devices=[2,2]<=[4] last_tile_dims={other}",
            "other",
            "mesh['a'=2], [{'b'},{}]",
            "mesh['a'=2], [{'a'},{'a'}]",
            "mesh['a'=2,'a'=2], [{'a'}]",
            "mesh['a'=4], [{'a':(1)3}]",
            "mesh['a'=4], [{'a':(1)2,'a':(2)2}]",
        )
    },
    **{
        f"replica_groups={one}": module(
            f"r = f32[2,3] all-reduce(p), to_apply=add, replica_groups={one}", ADD
        )
        for one in (
            "{0,1}",
            "[2,2]",
            "[4]<=[4]",
            "[2,2,1]<=[4]",
            "mesh['a'=2,'b'=2] {'c'}",
            "mesh['a'=2,'b'=2] {'5'}",
            "mesh['a'=2,'b'=2] {}",
            "mesh['a'=2] {a}",
            "mesh['a'=2] {'a','a'}",
            "mesh['a'=2,'b'=2, device_ids=(0,1,2)] {'a'}",
            "mesh['a'=4] {'a':(2)4}",
        )
    },
}


# XLA's newest parser refuses these; that of older packages takes some devices.
@pytest.mark.parametrize("one", ["[2,2]<=[16]", "[2,2]0,1,2", "[2,2]0,1,2,3,4"])
def test_devices_other_than_the_tiles_are_refused(one):
    with pytest.raises(RuntimeError, match=r"expected 4 devices for the tiles"):
        hlo.parse(module(f"c = f32[2,3] copy(p), sharding={{devices={one}}}"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_xla_refuses_is_refused(name):
    assert theirs(REFUSED[name]).startswith("refused")
    with pytest.raises(RuntimeError, match=r"^hlo: "):
        hlo.parse(REFUSED[name])


@pytest.mark.parametrize("name", ["elided constants", "sizes without a bound", "buffers"])
def test_what_only_describes_is_refused_when_it_runs(name):
    module = hlo.parse(TAKEN[name])
    for run in (hlo.compile, hlo.evaluate):
        with pytest.raises(RuntimeError, match=r"left out|with a bound"):
            run(module) if run is hlo.compile else run(module, lamella.zeros(2, 3))


READ_ONLY = {
    "floats of several types": r"'a' \(add\): expected operands of one shape",
    "a scatter whose sum is of another type": r"'s' \(scatter\): expected parameter 0 of 'add'",
    "a bitcast to fewer bytes": r"'b' \(bitcast\): expected 24 bytes",
    "a transform of another length": r"'f' \(fft\): expected dimension 1 to be 8",
}


@pytest.mark.parametrize("name", READ_ONLY)
def test_what_backends_rewrite_is_refused_when_it_is_compiled(name):
    for run in (hlo.compile, hlo.evaluate):
        with pytest.raises(RuntimeError, match=READ_ONLY[name]):
            run(TAKEN[name], *([] if run is hlo.compile else [lamella.zeros(2, 3)]))


def test_a_number_for_a_large_array_stays_one():
    text = "ENTRY e {\n  ROOT c = f32[256,1024,1024] constant(5)\n}"
    module = hlo.parse(text)
    for again in (hlo.parse(str(module)), hlo.from_json(module.to_json())):
        assert again == module and "constant(5)" in str(again)
    assert module.diff(module) == "" and len(module.to_html()) < 200_000
    values = hlo.evaluate(text.replace("256,1024,1024", "3,1024"))[0]
    assert values[0, 0] == 5 and values.sum() == 5 and values.shape == (3, 1024)
    with pytest.raises(RuntimeError, match="expected a constant of moderate size"):
        hlo.parse(text.replace("256,", "257,"))


def test_values_of_constants():
    values = {
        "f32[2,3] constant(5)": [[5, 0, 0], [0, 0, 0]],
        "s64[2] constant({-1, 18446744073709551615})": [-1, -1],
        "f32[3] constant({1 2,,3})": [1, 2, 3],
        "f16[2] constant({65519, -65504})": [65504, -65504],
    }
    for text, expected in values.items():
        found = hlo.evaluate(f"ENTRY e {{\n  ROOT c = {text}\n}}")[0]
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_payloads_of_nans_are_kept():
    text = "f32[4] constant({nan, -nan, nan(0x1), -nan(0x7fffff)})"
    bits = np.asarray(hlo.evaluate(f"ENTRY e {{\n  ROOT c = {text}\n}}")[0]).view(np.uint32)
    assert [hex(int(one)) for one in bits] == [
        "0x7fc00000",
        "0xffc00000",
        "0x7f800001",
        "0xffffffff",
    ]
    assert text in str(hlo.parse(f"ENTRY e {{\n  ROOT c = {text}\n}}")).replace("{0}", "")


MISSING = ["convolution(p)", "async-update()", "async-done()", "all-gather-start()"]
MISSING += ["collective-permute-start()", "dynamic-update-slice(p)", "reduce()", "scatter()"]
MISSING += ["sort()", "dynamic-slice()", "call()", "conditional()", "map()", "scan()", "rng()"]
MISSING += ["gather(p, p)", "while(p)", "fusion()", "reduce-window(p)", "all-to-all()", "tuple()"]
MISSING += [
    "get-tuple-element(), index=0",
    "recv-done()",
    "dynamic-slice(), dynamic_slice_sizes={1}",
]
MISSING += ["concatenate()", "all-reduce()", "custom-call()", "dynamic-reshape()", "topk(p)"]


@pytest.mark.parametrize("body", MISSING)
@pytest.mark.parametrize("attributes", ["", ", dimensions={9}", ", dimensions={0}, to_apply=add"])
def test_missing_operands_and_attributes_are_refused(body, attributes):
    text = module(f"ROOT r = f32[2,3] {body}{attributes}", ADD)
    with pytest.raises(RuntimeError, match=r"^hlo: "):
        hlo.parse(text)
    try:
        unverified = hlo.parse(text, verify=False)
    except RuntimeError:
        return
    unverified.to_html(), unverified.to_dot(), unverified.to_json(), str(unverified)
    assert unverified.diff(unverified) == ""
    with pytest.raises(RuntimeError, match=r"^hlo: "):
        unverified.verify()


def test_a_computation_that_nothing_calls_does_not_differ_from_itself():
    one = hlo.parse(module("ROOT n = f32[2,3] negate(p)", ADD))
    assert one.diff(one) == ""
    other = hlo.parse(module("ROOT n = f32[2,3] negate(p)", ADD.replace(" add(a", " multiply(a")))
    assert "+ r = f32[] multiply(a, b)" in one.diff(other)


def test_sums_of_another_type_and_random_numbers_of_stated_sizes_run():
    x = lamella.tensor([1.5, 2.0, 3.0]).to(lamella.bfloat16)
    text = f"{ADD}\nENTRY e {{\n  q = bf16[3] parameter(0)\n  ROOT r = f32[3] all-reduce(q), "
    text += "replica_groups={}, to_apply=add\n}"
    for result in (hlo.evaluate("HloModule m\n" + text, x), hlo.compile("HloModule m\n" + text)(x)):
        assert result[0].dtype == lamella.float32
        np.testing.assert_array_equal(np.asarray(result[0]), [1.5, 2.0, 3.0])
    text = text.replace("f32[3] all-reduce(q)", "(f32[3], bf16[3]) all-reduce(q, q)")
    for result in (hlo.evaluate("HloModule m\n" + text, x), hlo.compile("HloModule m\n" + text)(x)):
        assert [one.dtype for one in result] == [lamella.float32, lamella.bfloat16]
        for one in result:
            np.testing.assert_array_equal(np.asarray(one.float()), [1.5, 2.0, 3.0])
    numbers = np.asarray(hlo.evaluate(TAKEN["rng of three operands"], lamella.zeros(2, 3))[0])
    assert numbers.shape == (2, 3)
    assert ((numbers >= 0) & (numbers < 1)).all()


# ---- Names that text cannot have -----------------------------------------------------------------

NAMES = ("s1", "u2", "f32", "pred", "token", "bf16", "f8e4m3fn", "true", "nan", "ENTRY", "manual",
         "__x", "____", "__xla_x", "tuple", "S1", "b")  # fmt: skip


def read_again(module):
    """The text must be read, by XLA's parser too, as the same module."""
    assert hlo.parse(str(module)) == module
    assert not theirs(str(module)).startswith("refused")
    return module


@pytest.mark.parametrize("name", NAMES)
def test_names_from_elsewhere_are_ones_that_text_can_have(name, tmp_path):
    """Arguments of functions, builders and ops, and symbols of StableHLO have names of any kind;
    XLA's text has no instruction with a type's name, and no module with a keyword's."""
    space: dict = {}
    exec(f"def fn({name}, other): return {name} + other", space)
    trace = lamella.trace(space["fn"], lamella.ones(2), lamella.ones(2))
    traced = read_again(hlo.from_trace(trace))
    assert hlo.evaluate(traced, lamella.ones(2), lamella.ones(2))[0].tolist() == [2, 2]

    builder = hlo.Builder(name)
    shape = hlo.parse(TAKEN["no header"]).entry.root.shape
    read_again(builder.build(hlo.neg(hlo.parameter(builder, 0, shape, name))))

    file = tmp_path / "f.mlir"
    file.write_text(
        f"module @{name} {{\n"
        f"  func.func private @{name}(%a: tensor<2xf32>) -> tensor<2xf32> {{\n"
        "    return %a : tensor<2xf32>\n  }\n"
        "  func.func @main(%s1: tensor<2xf32>) -> tensor<2xf32> {\n"
        f"    %f32 = func.call @{name}(%s1) : (tensor<2xf32>) -> tensor<2xf32>\n"
        "    return %f32 : tensor<2xf32>\n  }\n}\n"
    )
    read_again(hlo.load(file))


@pytest.mark.parametrize("name", ["a b", "1-2", "s1", "é"])
def test_symbols_that_differ_in_what_text_cannot_have_stay_apart(name, tmp_path):
    """They get names that text can have, and different ones."""
    other = name[:-1] + "_" if name != "s1" else "s1_"
    body = "(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
    file = tmp_path / "f.mlir"
    file.write_text(
        f'module @m {{\nfunc.func private @"{name}"{body}'
        "%r = stablehlo.negate %a : tensor<2xf32>\nreturn %r : tensor<2xf32> }\n"
        f'func.func private @"{other}"{body}return %a : tensor<2xf32> }}\n'
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        f'%y = func.call @"{other}"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n'
        f'%z = func.call @"{name}"(%y) : (tensor<2xf32>) -> tensor<2xf32>\n'
        "return %z : tensor<2xf32> }\n}\n"
    )
    module = read_again(hlo.load(file))
    assert hlo.evaluate(module, lamella.ones(2))[0].tolist() == [-1, -1]


def test_a_type_as_name_is_refused_by_its_name():
    for mark in ("", "%"):
        with pytest.raises(RuntimeError) as caught:
            hlo.parse(module(f"{mark}s1 = f32[2,3] negate(p)"))
        assert str(caught.value) == (
            "hlo: line 5, column 3: expected a name that is no type and does not begin with '__', "
            "got 's1'"
        )


@pytest.mark.parametrize("name", ["s1", "__x", "a b", "", "é"])
def test_names_of_json_are_names_of_text(name):
    text = hlo.parse(module("n = f32[2,3] negate(p)")).to_json().replace('"n"', f'"{name}"')
    with pytest.raises(RuntimeError, match="name: expected a name of HLO, got "):
        hlo.from_json(text)
