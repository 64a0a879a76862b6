"""Layers that derive from base classes of PyTorch's layers, and override or call their methods."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.utils import _pair

torch.manual_seed(0)
x = torch.randn(2, 4, 6, 6)


class Convolution(_ConvNd):
    def __init__(self, inputs, outputs, size, padding=1, mode="zeros"):
        sizes = (_pair(size), _pair(1), _pair(padding), _pair(1))
        super().__init__(inputs, outputs, *sizes, False, _pair(0), 2, True, mode)

    def forward(self, x):
        padding = self.padding
        if self.padding_mode != "zeros":
            x = F.pad(x, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = _pair(0)
        return F.conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Transposed(_ConvTransposeNd):
    def __init__(self, inputs, outputs, size):
        sizes = (_pair(size), _pair(2), _pair(1), _pair(1))
        super().__init__(inputs, outputs, *sizes, True, _pair(0), 1, False, "zeros")

    def forward(self, x, output_size=None):
        extra = self._output_padding(
            x, output_size, self.stride, self.padding, self.kernel_size, 2, self.dilation
        )
        return F.conv_transpose2d(x, self.weight, None, self.stride, self.padding, extra)


class Standardised(nn.Conv2d):
    def forward(self, x):
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return self._conv_forward(x, weight, self.bias)


for layer in (
    Convolution(4, 6, 3),
    Convolution(4, 2, 3, 2, "reflect"),
    Transposed(4, 3, 3),
    Standardised(4, 2, 3, padding="same", padding_mode="circular"),
):
    y = layer(x)
    y.square().mean().backward()
    print(layer, y.shape, y.sum(), layer.weight.grad.norm())
print(Transposed(4, 3, 3)(x, (12, 12)).shape)


class AnyBatchNorm(_BatchNorm):
    def _check_input_dim(self, input):
        print("checked", input.dim())


class Scale(_NormBase):
    def forward(self, input):
        return input * self.weight.view(-1, 1, 1) + self.running_var.view(-1, 1, 1)


class Ghost(nn.BatchNorm2d):
    def forward(self, input):
        self._check_input_dim(input)
        return torch.cat([super(Ghost, self).forward(part) for part in input.chunk(2)])


class AnyInstanceNorm(_InstanceNorm):
    def _get_no_batch_dim(self):
        return 3

    def _check_input_dim(self, input):
        if input.dim() not in (3, 4):
            raise ValueError("refused")


print(
    AnyBatchNorm(4)(x).std((0, 2, 3)).detach(),
    AnyBatchNorm(3, affine=False)(torch.ones(2, 3, 1, 1, 2)).shape,
)
print(Scale(4, 1e-3, 0.2, True, True)(x).sum(), Scale(4, affine=False))
print(Ghost(4)(x).std(), AnyInstanceNorm(4)(x[0]).shape, AnyInstanceNorm(4, affine=True)(x).std())
for wrong in (lambda: Ghost(4)(x[0]), lambda: AnyInstanceNorm(4)(x[0, 0])):
    try:
        wrong()
    except ValueError as error:
        print(type(error).__name__)


class Encoder(nn.TransformerEncoderLayer):
    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        out, self.seen = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=True
        )
        return self.dropout1(out)

    def _ff_block(self, x):
        return 0.5 * super()._ff_block(x)


class Decoder(nn.TransformerDecoderLayer):
    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        return 2 * super()._mha_block(x, mem, attn_mask, key_padding_mask)


class Plain(nn.Transformer):
    def _reset_parameters(self):
        for p in self.parameters():
            nn.init.constant_(p, 0.01)


tokens = torch.randn(3, 2, 8)
for first in (True, False):
    layer = Encoder(8, 2, 16, dropout=0.0, norm_first=first)
    y = layer(tokens)
    y.pow(3).sum().backward()
    print(y[0, 0, :3], layer.seen.shape, layer.linear1.weight.grad.norm())
    y = Decoder(8, 2, 16, dropout=0.0, norm_first=first)(tokens, y.detach())
    print(y[0, 0, :3])
    inherited = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.5, norm_first=first)
    torch.manual_seed(3)
    print(inherited(tokens, tokens).std())
print(Plain(8, 2, 1, 1, 16, 0.0)(tokens, tokens)[0, 0, :3])


class Reordered(nn.LSTM):
    def forward(self, input, hx=None):
        order = torch.tensor([1, 0])
        if hx is None:
            hx = tuple(torch.zeros(self.num_layers, 2, self.hidden_size) for _ in range(2))
        hx = self.permute_hidden(hx, order)
        self.check_forward_args(input, hx, None)
        print(self.get_expected_hidden_size(input, None))
        return super().forward(input, hx)


y, (h, c) = Reordered(8, 3, 2)(tokens)
print(y.sum(), h.shape, c.sum())


class Table(nn.Embedding):
    def reset_parameters(self):
        nn.init.normal_(self.weight, std=0.1)
        self._fill_padding_idx_with_zero()


class Counting(nn.Module):
    calls = 0

    def __call__(self, *args):
        Counting.calls += 1
        return self._call_impl(*args)

    def forward(self, x):
        return x + 1


print(Table(4, 2, padding_idx=1).weight, Counting()(torch.ones(1)), Counting.calls)
print(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).type(torch.DoubleTensor)[1].running_mean)
