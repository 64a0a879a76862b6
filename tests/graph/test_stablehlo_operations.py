"""StableHLO's operations and attributes that JAX's programs do not have, and errors with their
position."""

from __future__ import annotations

import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = lamella.hlo


def program(arguments: str, results: str, body: str, attributes: str = "") -> str:
    return f"""module @m {attributes} {{
  func.func @main({arguments}) -> ({results}) {{
{body}
  }}
}}"""


def instructions(text: str) -> str:
    return hlo.parse(text).to_string(metadata=False)


F = "tensor<2x3xf32>"
SUM = """({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })"""
GROUPS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>"


@pytest.mark.parametrize("config", ["ab,bc->ac", "ab,bc->ca", "ab,cb->abc", "ba,bc->bac"])
def test_einsum(config):
    left, right = config.split("->")[0].split(",")
    sizes = dict(zip("abc", (2, 3, 4)))
    x = np.arange(np.prod([sizes[c] for c in left]), dtype=np.float32).reshape(
        [sizes[c] for c in left]
    )
    y = np.arange(np.prod([sizes[c] for c in right]), dtype=np.float32).reshape(
        [sizes[c] for c in right]
    )
    wanted = np.einsum(config, x, y)

    def type_(array):
        return "tensor<" + "x".join(map(str, array.shape)) + "xf32>"

    body = f"""
    %0 = stablehlo.einsum %x, %y, config = "{config}" :
      ({type_(x)}, {type_(y)}) -> {type_(wanted)}
    return %0 : {type_(wanted)}"""
    text = program(f"%x: {type_(x)}, %y: {type_(y)}", type_(wanted), body)
    (got,) = hlo.evaluate(text, x, y)
    np.testing.assert_allclose(got.numpy(), wanted)


def test_unary_einsum_and_selection_and_old_products():
    body = f"""
    %0 = "stablehlo.unary_einsum"(%x) {{einsum_config = "ab->b"}} : ({F}) -> tensor<3xf32>
    %1 = "stablehlo.torch_index_select"(%x, %i) {{dim = 1 : i64, batch_dims = 0 : i64}} : ({F},
      tensor<2xi32>) -> tensor<2x2xf32>
    %2 = "stablehlo.torch_index_select"(%x, %j) {{dim = 1 : i64, batch_dims = 1 : i64}} : ({F},
      tensor<2x2xi32>) -> tensor<2x2xf32>
    %3 = stablehlo.dot %x, %0, precision = [HIGH, DEFAULT] : ({F}, tensor<3xf32>) -> tensor<2xf32>
    %4 = stablehlo.broadcast %3, sizes = [4] : (tensor<2xf32>) -> tensor<4x2xf32>
    return %0, %1, %2, %4 : tensor<3xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>"""
    text = program(
        f"%x: {F}, %i: tensor<2xi32>, %j: tensor<2x2xi32>",
        "tensor<3xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>",
        body,
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    i, j = np.array([2, 0], np.int32), np.array([[1, 0], [2, 2]], np.int32)
    got = [t.numpy() for t in hlo.evaluate(text, x, i, j)]
    wanted = (x.sum(0), x[:, i], np.take_along_axis(x, j, 1), np.tile(x @ x.sum(0), (4, 1)))
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_sizes_that_are_operands():
    body = """    %n = stablehlo.constant dense<[4, 3]> : tensor<2xi32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1> : tensor<2xi32>
    %zero = stablehlo.constant dense<0> : tensor<2xi32>
    %two = stablehlo.constant dense<2> : tensor<2xi32>
    %0 = stablehlo.dynamic_broadcast_in_dim %a, %n, dims = [1] : (tensor<3xf32>, tensor<2xi32>) ->
      tensor<4x3xf32>
    %1 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<2xi32>) -> tensor<4x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<4x3xf32>
    %3 = stablehlo.dynamic_pad %2, %z, %one, %zero, %zero : (tensor<4x3xf32>, tensor<f32>,
      tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<5x4xf32>
    %4 = stablehlo.real_dynamic_slice %3, %zero, %two, %one : (tensor<5x4xf32>, tensor<2xi32>,
      tensor<2xi32>, tensor<2xi32>) -> tensor<2x2xf32>
    %m = stablehlo.constant dense<4> : tensor<1xi32>
    %5 = stablehlo.dynamic_reshape %4, %m : (tensor<2x2xf32>, tensor<1xi32>) -> tensor<4xf32>
    return %3, %5 : tensor<5x4xf32>, tensor<4xf32>"""
    a = np.array([1.0, 2.0, 3.0], np.float32)
    padded, part = hlo.evaluate(
        program("%a: tensor<3xf32>", "tensor<5x4xf32>, tensor<4xf32>", body), a
    )
    wanted = np.pad(a + np.arange(4, dtype=np.float32)[:, None], ((1, 0), (1, 0)))
    np.testing.assert_array_equal(padded.numpy(), wanted)
    np.testing.assert_array_equal(part.numpy(), wanted[:2, :2].reshape(4))


@pytest.mark.parametrize(
    "operation, result, wanted",
    [
        (
            f'"stablehlo.all_reduce"(%x) <{{{CHANNEL}, {GROUPS}, use_global_device_ids}}> {SUM}',
            F,
            "f32[2,3]{1,0} all-reduce(Arg_0.1), to_apply=region_2, channel_id=5, "
            "replica_groups={{0,1},{2,3}}, use_global_device_ids=true",
        ),
        (
            f'"stablehlo.all_gather"(%x) <{{all_gather_dim = 1 : i64, {GROUPS}}}>',
            "tensor<2x6xf32>",
            "f32[2,6]{1,0} all-gather(Arg_0.1), dimensions={1}, replica_groups={{0,1},{2,3}}",
        ),
        (
            f'"stablehlo.reduce_scatter"(%x) <{{scatter_dimension = 0 : i64, {GROUPS}}}> {SUM}',
            "tensor<1x3xf32>",
            "f32[1,3]{1,0} reduce-scatter(Arg_0.1), dimensions={0}, to_apply=region_2, "
            "replica_groups={{0,1},{2,3}}",
        ),
        (
            '"stablehlo.collective_permute"(%x) <{source_target_pairs = '
            "dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}>",
            F,
            "f32[2,3]{1,0} collective-permute(Arg_0.1), source_target_pairs={{0,1},{1,0}}",
        ),
        (
            f'"stablehlo.all_to_all"(%x) <{{split_dimension = 0 : i64, concat_dimension = 1 : i64, '
            f"split_count = 2 : i64, {GROUPS}}}>",
            "tensor<1x6xf32>",
            "f32[2,3]{1,0} all-to-all(Arg_0.1), dimensions={0}, replica_groups={{0,1},{2,3}}",
        ),
        (
            '"stablehlo.all_reduce"(%x) <{replica_groups = #stablehlo.replica_group_mesh_axes<'
            'mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "a", size = 2>, '
            '#stablehlo.mesh_axis<name = "b", size = 3>]>, '
            f'axes = [#stablehlo.axis_ref<name = "a">]>}}> {SUM}',
            F,
            "all-reduce(Arg_0.1), to_apply=region_2, replica_groups={{0,3},{1,4},{2,5}}",
        ),
        (
            f'"stablehlo.cross-replica-sum"(%x) <{{{GROUPS}}}>',
            F,
            "f32[2,3]{1,0} all-reduce(Arg_0.1), to_apply=region_2, replica_groups={{0,1},{2,3}}",
        ),
    ],
)
def test_collectives(operation, result, wanted):
    body = f"    %0 = {operation} : ({F}) -> {result}\n    return %0 : {result}"
    assert wanted in instructions(program(f"%x: {F}", result, body))


def test_transfers_have_a_token_last():
    body = f"""
    %0:2 = "stablehlo.infeed"(%t) <{{infeed_config = "a"}}> : (!stablehlo.token) -> ({F},
      !stablehlo.token)
    %1 = "stablehlo.outfeed"(%0#0, %0#1) <{{outfeed_config = "b"}}> : ({F}, !stablehlo.token) ->
      !stablehlo.token
    %2 = "stablehlo.send"(%0#0, %1) <{{channel_handle = #stablehlo.channel_handle<handle = 3,
      type = 2>, is_host_transfer = true}}> : ({F}, !stablehlo.token) -> !stablehlo.token
    %3:2 = "stablehlo.recv"(%2) <{{channel_handle = #stablehlo.channel_handle<handle = 4,
      type = 3>, is_host_transfer = true}}> : (!stablehlo.token) -> ({F}, !stablehlo.token)
    return %3#0, %3#1 : {F}, !stablehlo.token"""
    got = instructions(program("%t: !stablehlo.token", f"{F}, !stablehlo.token", body))
    for part in (
        '((f32[2,3]{1,0}), token[]) infeed(Arg_0.1), infeed_config="a"'.replace(
            "(f32[2,3]{1,0})", "f32[2,3]{1,0}"
        ),
        'outfeed_config="b", outfeed_shape=f32[2,3]{1,0}',
        "channel_id=3, is_host_transfer=true",
        "(f32[2,3]{1,0}, u32[], token[]) recv(",
    ):
        assert part in got, got


def test_asynchronous_pairs():
    body = f"""    %0 = "stablehlo.async_start"(%x) ({{
    ^bb0(%a: {F}):
      %2 = "stablehlo.all_reduce"(%a) <{{{GROUPS}}}> {SUM} : ({F}) -> {F}
      stablehlo.return %2 : {F}
    }}) : ({F}) -> !stablehlo.future<{F}>
    %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<{F}>) -> {F}
    return %1 : {F}"""
    got = instructions(program(f"%x: {F}", F, body))
    assert "((f32[2,3]{1,0}), f32[2,3]{1,0}) async-start(Arg_0.1), calls=region_2" in got
    assert "f32[2,3]{1,0} async-done(" in got


def test_custom_calls_keep_all_that_they_state():
    body = """
    %0:2 = stablehlo.custom_call @f(%x, %y) {api_version = 4 : i32, backend_config = {a = 1 : i64,
      "b c" = [1 : i32, 2 : i32], d = dense<[1, 2]> : tensor<2xi8>, e = 0.5 : f32, f = true,
      g = "q\\22"}, called_computations = [@g], has_side_effect = true,
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>],
      output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0],
      operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> :
      tensor<2xindex>, dense<> : tensor<0xindex>]} : (tensor<2x3xf32>, tensor<i32>) ->
      (tensor<2x3xf32>, tensor<i32>)
    return %0#0 : tensor<2x3xf32>
  }
  func.func private @g(%a: tensor<f32>) -> tensor<f32> {
    return %a : tensor<f32>"""
    got = instructions(program("%x: tensor<2x3xf32>, %y: tensor<i32>", "tensor<2x3xf32>", body))
    assert (
        "(f32[2,3]{0,1}, s32[]) custom-call(Arg_0.1, Arg_1.2), called_computations={g}, "
        'custom_call_target="f", custom_call_has_side_effect=true, '
        "operand_layout_constraints={f32[2,3]{0,1}, s32[]}, "
        "output_to_operand_aliasing={{0}: (0, {})}, api_version=API_VERSION_TYPED_FFI, "
        'backend_config={a = 1 : i64, "b c" = [1 : i32, 2 : i32], '
        'd = dense<"0x0102"> : tensor<2xi8>, e = 0.5 : f32, f = true, g = "q\\""}'
    ) in got


def test_what_surrounds_a_program_is_kept():
    arguments = (
        f'%x: {F} {{tf.aliasing_output = 0 : i32, mhlo.sharding = "{{devices=[2,1]0,1}}", '
        'mhlo.layout_mode = "{0,1}"}, '
        f'%y: {F} {{jax.buffer_donor = true, mhlo.frontend_attributes = {{k = "v"}}}}'
    )
    results = f'{F} {{mhlo.sharding = "{{replicated}}"}}, {F}'
    body = f"    %0 = stablehlo.add %x, %y : {F}\n    return %0, %y : {F}, {F}"
    got = instructions(
        program(arguments, results, body, "attributes {mhlo.num_partitions = 2 : i32}")
    )
    assert got.startswith(
        "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, entry_computation_layout={("
        "f32[2,3]{0,1}, f32[2,3]{1,0})->(f32[2,3]{1,0}, f32[2,3]{1,0})}, num_partitions=2, "
        "buffer_donor={ (1, {}) }"
    )
    assert "parameter(0), sharding={devices=[2,1]0,1}" in got
    assert 'parameter(1), frontend_attributes={k="v"}' in got
    assert "sharding={{replicated}, {unknown}}" in got


def test_composites_are_opcodes_or_what_they_consist_of():
    body = f"""    %0 = stablehlo.composite "chlo.erf" %x {{decomposition = @d}} : ({F}) -> {F}
    %1 = stablehlo.composite "my.name" %0 {{composite_attributes = {{n = 2 : i64}},
      decomposition = @d, version = 3 : i32}} : ({F}) -> {F}
    return %1 : {F}
  }}
  func.func private @d(%a: {F}) -> {F} {{
    %0 = stablehlo.negate %a : {F}
    return %0 : {F}"""
    got = instructions(program(f"%x: {F}", F, body))
    assert "erf(Arg_0.1)" in got
    assert (
        "to_apply=d, is_composite=true, frontend_attributes={composite.attributes="
        '"{n = 2 : i64}",composite.name="my.name",composite.version="3"}'
    ) in got


def test_regions_use_what_is_around_them():
    body = """    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %0 = "stablehlo.reduce"(%x, %c) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %2 = stablehlo.add %l, %r : tensor<f32>
      %3 = stablehlo.multiply %2, %c : tensor<f32>
      %4 = stablehlo.divide %3, %c : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.if"(%p) ({
      stablehlo.return %0 : tensor<f32>
    }, {
      %5 = stablehlo.negate %0 : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %1 : tensor<f32>"""
    text = program("%x: tensor<2x3xf32>, %p: tensor<i1>", "tensor<f32>", body)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for chosen, wanted in ((True, 17.0), (False, -17.0)):
        (got,) = hlo.evaluate(text, x, np.array(chosen))
        assert float(got.numpy()) == wanted


@pytest.mark.parametrize(
    "type_, elements, wanted",
    [
        ("3xi1", "[true, false, true]", [True, False, True]),
        ("2xi8", "[-128, 127]", [-128, 127]),
        ("2xui64", "[18446744073709551615, 0]", [2**64 - 1, 0]),
        ("2xf64", "[1.000000e-01, 0x7FF0000000000000]", [0.1, np.inf]),
        ("2xf32", "[-0.000000e+00, 0xFF800000]", [-0.0, -np.inf]),
        ("2xf16", "[1.0, 6.5504e+04]", [1.0, 65504.0]),
        ("2xcomplex<f32>", "[(1.0, 2.0), (0.0, -1.0)]", [1 + 2j, -1j]),
        ("2x2xi32", '"0x01000000020000000300000004000000"', [[1, 2], [3, 4]]),
        ("2x2xi32", "7", [[7, 7], [7, 7]]),
        ("0xf32", "[]", []),
    ],
)
def test_constants(type_, elements, wanted):
    type_ = f"tensor<{type_}>"
    body = f"    %c = stablehlo.constant dense<{elements}> : {type_}\n    return %c : {type_}"
    module = hlo.parse(program("", type_, body))
    for one in (module, hlo.parse(module.to_stablehlo())):
        (got,) = hlo.evaluate(one)
        np.testing.assert_array_equal(got.numpy(), np.array(wanted, got.numpy().dtype))


ADD = f"    %0 = stablehlo.add %x, %x : {F}\n    return %0 : {F}"


@pytest.mark.parametrize(
    "body, message",
    [
        (
            ADD.replace("%x, %x", "%x, %y"),
            "stablehlo: line 3, column 28: expected a value that is defined above, got '%y'",
        ),
        (
            ADD.replace("stablehlo.add", "stablehlo.plus"),
            "stablehlo: line 3, column 10: 'plus': expected an operation of StableHLO",
        ),
        (
            ADD.replace("stablehlo.add", "arith.addf"),
            "stablehlo: line 3, column 20: expected an operation of stablehlo, chlo or func, got "
            "'arith.addf'",
        ),
        (
            ADD.replace("2x3xf32", "3x2xf32", 1),
            "stablehlo: line 3, column 10: hlo: 'add.2' (add): expected the shape to be f32[2,3], "
            "got f32[3,2]",
        ),
        (
            "    %0 = stablehlo.convert %x : (tensor<2x3xf32>) -> "
            "tensor<2x3x!quant.uniform<i8:f32, 0.1>>\n    return %x : tensor<2x3xf32>",
            "stablehlo: line 3, column 10: expected a type that modules have, got "
            "!quant.uniform<i8:f32, 0.1>",
        ),
    ],
)
def test_errors_of_text_have_a_position(body, message):
    with pytest.raises(RuntimeError) as error:
        hlo.parse(program(f"%x: {F}", F, body))
    assert str(error.value) == message


def test_errors_of_bytecode_have_a_position():
    data = hlo.parse(program(f"%x: {F}", F, ADD)).to_stablehlo()
    for cut in range(len(data)):
        with pytest.raises(RuntimeError, match="^stablehlo: (byte|line) [0-9]+"):
            hlo.parse(data[:cut] if cut > 3 else b"ML\xefR" + data[:cut])
    with pytest.raises(RuntimeError) as error:
        hlo.parse(data.replace(b"add_v1", b"sum_v9"))
    assert "expected an operation of VHLO, got 'sum_v9' (StableHLO_v1.10.0)" in str(error.value)
    with pytest.raises(RuntimeError, match="expected a function 'other' among 1"):
        hlo.parse(data, entry="other")
