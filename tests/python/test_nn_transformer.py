"""Multi-head attention and transformers against PyTorch's."""

import pytest
from test_nn_modules import assert_close, check, make_both, to_own

import lamella
from lamella import nn

torch = pytest.importorskip("torch")


def draw(*shape):
    return torch.randn(shape)


ATTENTIONS = [
    ((8, 2), {}),
    ((8, 2), {"bias": False, "batch_first": True}),
    ((8, 4), {"add_bias_kv": True, "add_zero_attn": True}),
    ((8, 2), {"kdim": 5, "vdim": 6}),
    ((8, 2, 0.3), {"kdim": 5, "vdim": 6, "add_bias_kv": True, "batch_first": True}),
]


def same_start(own, their):
    assert repr(own) == repr(their)
    assert list(own.state_dict()) == list(their.state_dict())
    for key, value in their.state_dict().items():
        assert_close(own.state_dict()[key], value, key, 1e-6)


@pytest.mark.parametrize(("args", "kwargs"), ATTENTIONS)
def test_attention(args, kwargs):
    own, their = make_both("MultiheadAttention", args, kwargs)
    same_start(own, their)
    key, value = kwargs.get("kdim", 8), kwargs.get("vdim", 8)
    turn = (lambda x: x.transpose(0, 1)) if kwargs.get("batch_first") else (lambda x: x)
    check(
        own,
        their,
        lambda: [turn(draw(4, 3, 8)), turn(draw(5, 3, key)), turn(draw(5, 3, value))],
        args,
    )
    check(own, their, lambda: [draw(4, 8), draw(5, key), draw(5, value)], args)


PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [True] + [False] * 4])
# True or a number in a mask: what is not read, or what is added to the scores.
MASKS = [
    {"attn_mask": torch.triu(torch.ones(4, 5), 2).bool()},
    {"attn_mask": torch.randn(4, 5)},
    {"attn_mask": torch.randn(6, 4, 5)},
    {
        "key_padding_mask": torch.tensor(
            [[False] * 5, [False] * 3 + [True] * 2, [True] + [False] * 4]
        )
    },
    {"key_padding_mask": torch.randn(3, 5), "attn_mask": torch.randn(4, 5)},
]


@pytest.mark.parametrize("options", MASKS)
@pytest.mark.parametrize("further", [False, True])
def test_masks_of_attention(options, further):
    kwargs = {"add_bias_kv": further, "add_zero_attn": further}
    own, their = make_both("MultiheadAttention", (8, 2), kwargs)
    query, key = draw(4, 3, 8), draw(5, 3, 8)
    for more in ({}, {"average_attn_weights": False}, {"need_weights": False}):
        wanted = their(query, key, key, **options, **more)
        found = own(*to_own([query, key, key]), **to_own(options), **more)
        assert_close(found[0], wanted[0], options)
        assert (found[1] is None) == (wanted[1] is None)
        if wanted[1] is not None:
            assert_close(found[1], wanted[1], options)


def test_causal_attention():
    own, their = make_both("MultiheadAttention", (8, 2), {})
    x, mask = draw(4, 3, 8), torch.triu(torch.full((4, 4), float("-inf")), 1)
    for more in ({"need_weights": False}, {"need_weights": True}):
        wanted = their(x, x, x, attn_mask=mask, is_causal=True, **more)[0]
        y = to_own(x)
        assert_close(own(y, y, y, attn_mask=to_own(mask), is_causal=True, **more)[0], wanted, more)
    assert_close(nn.Transformer.generate_square_subsequent_mask(4), mask, "mask")


def test_what_attention_does_not_take():
    name = "multi_head_attention_forward"
    net = nn.MultiheadAttention(8, 2)
    x, y = lamella.ones(4, 3, 8), lamella.ones(5, 3, 8)
    cases = [
        (lambda: nn.MultiheadAttention(8, 3),
         "MultiheadAttention: expected 'embed_dim' to be divisible by 3 heads, got 8"),
        (lambda: net(x[:, :, :4], y, y),
         f"{name}: expected 'query' to have 8 numbers in its last dimension, got [4, 3, 4]"),
        (lambda: net(x, y, x),
         f"{name}: expected 'key' and 'value' to agree in their first dimensions, and with "
         "'query' in the batch, got [4, 3, 8], [5, 3, 8] and [4, 3, 8]"),
        (lambda: net(x, y, y, attn_mask=lamella.ones(4, 4)),
         f"{name}: expected 'attn_mask' to have the shape [4, 5] or [6, 4, 5], got [4, 4]"),
        (lambda: net(x, y, y, key_padding_mask=lamella.ones(5, 3)),
         f"{name}: expected 'key_padding_mask' to have the shape [3, 5], got [5, 3]"),
        (lambda: net(x, y, y, attn_mask=lamella.ones(4, 5, dtype=lamella.int64)),
         f"{name}: expected 'attn_mask' to be bool or floating, got lamella.int64"),
        (lambda: net(x, y, y, is_causal=True), f"{name}: expected 'attn_mask' with is_causal"),
    ]  # fmt: skip
    for call, text in cases:
        with pytest.raises((RuntimeError, AssertionError)) as error:
            call()
        assert str(error.value) == text


LAYERS = [
    {},
    {"norm_first": True, "batch_first": True},
    {"bias": False, "activation": "gelu", "dropout": 0.0},
]


@pytest.mark.parametrize("kwargs", LAYERS)
def test_layers(kwargs):
    own, their = make_both("TransformerEncoderLayer", (8, 2, 12), kwargs)
    same_start(own, their)
    check(own, their, lambda: [draw(3, 4, 8)], kwargs)
    check(own, their, lambda: [draw(4, 8)], kwargs)
    own, their = make_both("TransformerDecoderLayer", (8, 2, 12), kwargs)
    same_start(own, their)
    second = (3, 5, 8) if kwargs.get("batch_first") else (5, 4, 8)
    check(own, their, lambda: [draw(3, 4, 8), draw(*second)], kwargs)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("kwargs", LAYERS)
def test_transformer(kwargs):
    own, their = make_both("Transformer", (8, 2, 2, 2, 12), kwargs)
    same_start(own, their)
    turn = (lambda x: x.transpose(0, 1)) if kwargs.get("batch_first") else (lambda x: x)
    check(own, their, lambda: [turn(draw(5, 3, 8)), turn(draw(4, 3, 8))], kwargs)
    src, tgt = turn(draw(5, 3, 8)), turn(draw(4, 3, 8))
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    padding = torch.zeros(3, 5)
    padding[1, 3:] = float("-inf")
    options = {"tgt_mask": mask, "memory_key_padding_mask": padding}
    own.eval()
    their.eval()
    found = own(*to_own([src, tgt]), **to_own(options))
    assert_close(found, their(src, tgt, **options), kwargs)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_encoder_with_masks():
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    their = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(8))
    lamella.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    own = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8))
    same_start(own, their)
    own.eval()
    their.eval()
    src, mask = draw(3, 4, 8), torch.nn.Transformer.generate_square_subsequent_mask(4)
    assert_close(own(to_own(src), to_own(mask)), their(src, mask), "causal")
    padding = torch.tensor([[False] * 4, [False, False, True, True], [False] * 3 + [True]])
    found = own(to_own(src), src_key_padding_mask=to_own(padding))
    wanted = their(src, src_key_padding_mask=padding)
    kept = ~padding.unsqueeze(-1)
    assert_close(found * to_own(kept), wanted * kept, "padding")
    with pytest.raises(RuntimeError) as error:
        nn.TransformerEncoderLayer(8, 2, activation="tanh")
    assert str(error.value) == (
        "TransformerEncoderLayer: expected 'activation' to be relu, gelu or a function, got 'tanh'"
    )


def test_batches_without_samples():
    layer = nn.TransformerDecoderLayer(8, 2, 16)
    attention = nn.MultiheadAttention(8, 2)
    for batch, length in ((0, 3), (2, 0), (0, 0)):
        x = lamella.ones(length, batch, 8, requires_grad=True)
        assert tuple(layer(x, lamella.ones(3, batch, 8)).shape) == (length, batch, 8)
        mask = lamella.zeros(batch * 2, length, length)
        for wanted in (False, True):
            made, shares = attention(x, x, x, attn_mask=mask, need_weights=wanted)
            assert tuple(made.shape) == (length, batch, 8)
            assert shares is None or tuple(shares.shape) == (batch, length, length)
        made.sum().backward()
        assert x.grad.shape == x.shape
