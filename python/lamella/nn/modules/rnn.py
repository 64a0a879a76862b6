"""Recurrent layers: RNN, LSTM and GRU over sequences, and their cells for one step."""

from __future__ import annotations

import math
import warnings
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn import init
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter
from lamella.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

# The number of gates of each mode, and its number for the operator _rnn_layer.
_PARTS = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
_NUMBERS = {"RNN_TANH": 0, "RNN_RELU": 1, "LSTM": 2, "GRU": 3}


def _run(
    mode: str,
    rows: Tensor,
    hx: Tensor,
    cx: Tensor | None,
    weights: list[Tensor],
    bias: bool,
    batch_sizes: list[int],
    reverse: bool,
) -> Any:
    """(outputs, last hidden state, last cell) of one direction of a layer; rows are ordered by
    time."""
    w_ih, w_hh, *rest = weights
    b_ih, b_hh = rest[:2] if bias else (None, None)
    w_hr = rest[-1] if len(rest) % 2 else None
    keep = lamella.is_grad_enabled() and any(t.requires_grad for t in (rows, hx, *weights))
    gates = F.linear(rows, w_ih, b_ih)
    if hx.dtype != gates.dtype:  # under autocast
        hx, w_hh = hx.to(gates.dtype), w_hh.to(gates.dtype)
        cx, b_hh, w_hr = (t if t is None else t.to(gates.dtype) for t in (cx, b_hh, w_hr))
    operator: Any = lamella.ops.aten._rnn_layer
    made = (rows, w_ih, b_ih) if keep else ()  # the operands of the gates, for second derivatives
    number = _NUMBERS[mode]
    return operator(gates, hx, cx, w_hh, b_hh, w_hr, batch_sizes, number, reverse, keep, *made)[:3]


class RNNBase(Module):
    """The base of RNN, LSTM and GRU.

    The parameters of layer k are weight_ih_l{k}, weight_hh_l{k}, bias_ih_l{k}, bias_hh_l{k} and,
    with proj_size, weight_hr_l{k}; those of the reverse direction end in _reverse.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = self._get_name()
        if mode not in _PARTS:
            raise ValueError(f"{name}: expected 'mode' to be one of {[*_PARTS]}, got {mode!r}")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: expected 'dropout' to be from 0 to 1, got {dropout}")
        for what, value in (("hidden_size", hidden_size), ("num_layers", num_layers)):
            if not isinstance(value, int):
                raise TypeError(
                    f"{name}: expected '{what}' to be an int, got {type(value).__name__}"
                )
            if value <= 0:
                raise ValueError(f"{name}: expected '{what}' to be positive, got {value}")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"{name}: expected 'proj_size' to be from 0 to {hidden_size - 1}, got {proj_size}"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"{name}: dropout={dropout} stands between layers, and num_layers is 1",
                stacklevel=3,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows = _PARTS[mode] * hidden_size
        out = proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions()]:
                width = input_size if layer == 0 else out * self._directions()
                shapes: dict[str, tuple[int, ...]]
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                for weight, shape in names.items():
                    empty = lamella.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(weight, Parameter(empty))
                self._all_weights.append(list(names))
        self.reset_parameters()

    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Does nothing: the parameters need not be contiguous."""

    def reset_parameters(self) -> None:
        """Draws new values."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """input: [T, N, input_size], with batch_first [N, T, input_size], [T, input_size], or a
        PackedSequence; hx: [num_layers * directions, N, hidden], of the LSTM a pair of these.

        Returns the outputs in the form of the input, and the last hidden state (and cell).
        """
        if isinstance(input, PackedSequence):
            rows, sizes, order, back = input
            batch_sizes = sizes.tolist()
            self._check_width(rows, 2)
            states = self._states(rows, hx, batch_sizes[0], True)
            if order is not None:
                states = [state.index_select(1, order) for state in states]
            rows, states = self._layers(rows, states, batch_sizes)
            if back is not None:
                states = [state.index_select(1, back) for state in states]
            return PackedSequence(rows, sizes, order, back), self._given(states)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self._get_name()}: expected 'input' to have 2 or 3 dimensions, got "
                f"{input.dim()}"
            )
        self._check_width(input, input.dim())
        batched = input.dim() == 3
        steps = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            steps = steps.transpose(0, 1)
        length, count = steps.shape[:2]
        if length == 0:
            raise RuntimeError(f"{self._get_name()}: expected 'input' to have at least one step")
        states = self._states(input, hx, count, batched)
        rows = steps.reshape(length * count, -1)
        rows, states = self._layers(rows, states, [count] * length)
        output = rows.view(length, count, -1)
        if not batched:
            return output.squeeze(1), self._given([state.squeeze(1) for state in states])
        if self.batch_first:
            output = output.transpose(0, 1)
        return output, self._given(states)

    def _check_width(self, input: Tensor, dims: int) -> None:
        if input.dim() != dims or input.size(-1) != self.input_size:
            raise RuntimeError(
                f"{self._get_name()}: expected 'input' to have {self.input_size} numbers in its "
                f"last dimension, got {list(input.shape)}"
            )

    def _states(self, input: Tensor, hx: Any, count: int, batched: bool) -> list[Tensor]:
        """[num_layers * directions, N, *]: the hidden state, and for the LSTM the cell."""
        name, layers = self._get_name(), self.num_layers * self._directions()
        widths = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            widths.append(self.hidden_size)
        if hx is None:
            return [input.new_zeros((layers, count, width)) for width in widths]
        states = list(hx) if self.mode == "LSTM" else [hx]
        if len(states) != len(widths):
            raise RuntimeError(f"{name}: expected 'hx' to be a pair, got {len(states)} tensors")
        for part, (state, width) in enumerate(zip(states, widths)):
            wanted = [layers, count, width] if batched else [layers, width]
            if list(state.shape) != wanted:
                what = f"hx[{part}]" if len(states) > 1 else "hx"
                raise RuntimeError(
                    f"{name}: expected '{what}' to have the shape {wanted}, got "
                    f"{list(state.shape)}"
                )
        return states if batched else [state.unsqueeze(1) for state in states]

    # Called by the forward() of subclasses that call _VF.lstm() and the like themselves.

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises RuntimeError for rows of another width."""
        self._check_width(input, 3 if batch_sizes is None else 2)

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the hidden state."""
        count = input.size(0 if self.batch_first else 1)
        if batch_sizes is not None:
            count = int(batch_sizes[0])
        layers = self.num_layers * self._directions()
        return layers, count, self.proj_size or self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises RuntimeError for an input or a state of another shape."""
        self.check_input(input, batch_sizes)
        count = self.get_expected_hidden_size(input, batch_sizes)[1]
        self._states(input, hidden, count, True)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its batch permuted."""
        if permutation is None:
            return hx
        states = hx if self.mode == "LSTM" else (hx,)
        return self._given([state.index_select(1, permutation) for state in states])

    def _given(self, states: list[Tensor]) -> Any:
        return tuple(states) if self.mode == "LSTM" else states[0]

    def _layers(
        self, rows: Tensor, states: list[Tensor], batch_sizes: list[int]
    ) -> tuple[Tensor, list[Tensor]]:
        directions = self._directions()
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                place = layer * directions + direction
                hx, *cell = (state[place] for state in states)
                weights = [getattr(self, name) for name in self._all_weights[place]]
                cx = cell[0] if cell else None
                output, *ends = _run(
                    self.mode, rows, hx, cx, weights, self.bias, batch_sizes, direction == 1
                )
                outputs.append(output)
                last.append(tuple(ends[: len(states)]))
            rows = lamella.cat(outputs, 1) if directions == 2 else outputs[0]
            if self.dropout and layer + 1 < self.num_layers:
                rows = F.dropout(rows, self.dropout, self.training)
        return rows, [lamella.stack(ends) for ends in zip(*last)]

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it, over a sequence.

    RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False,
    dropout=0.0, bidirectional=False, device=None, dtype=None).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("RNN: expected no 'proj_size', which only the LSTM has")
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"RNN: expected 'nonlinearity' to be tanh or relu, got {nonlinearity!r}"
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory over a sequence: gates i, f, g, o; c' = f c + i g; h' = o tanh(c').

    LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, proj_size=0, device=None, dtype=None). With proj_size, h' is multiplied by
    a matrix [proj_size, hidden_size].
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units over a sequence: gates r, z, n; n = tanh(W_in x + b_in +
    r (W_hn h + b_hn)); h' = (1 - z) n + z h.

    GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device=None, dtype=None).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("GRU: expected no 'proj_size', which only the LSTM has")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """The base of the cells: weight_ih, weight_hh, bias_ih and bias_hh for num_chunks gates."""

    _mode = ""
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        shapes = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        for name, shape in shapes.items():
            setattr(self, name, Parameter(lamella.empty(shape, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            empty = lamella.empty(rows, device=device, dtype=dtype) if bias else None
            self.register_parameter(name, None if empty is None else Parameter(empty))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, input: Tensor, states: list[Tensor | None]) -> list[Tensor]:
        name = self._get_name()
        for what, tensor in (("input", input), *(("hx", state) for state in states)):
            if tensor is not None and tensor.dim() not in (1, 2):
                raise ValueError(
                    f"{name}: expected '{what}' to have 1 or 2 dimensions, got {tensor.dim()}"
                )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"{name}: expected 'input' to have {self.input_size} numbers in its last "
                f"dimension, got {list(input.shape)}"
            )
        rows = input if input.dim() == 2 else input.unsqueeze(0)
        shape = (rows.size(0), self.hidden_size)
        before = []
        for state in states:
            if state is None:
                state = lamella.zeros(shape, dtype=input.dtype, device=input.device)
            elif state.dim() == 1:
                state = state.unsqueeze(0)
            if tuple(state.shape) != shape:
                raise RuntimeError(
                    f"{name}: expected 'hx' to have the shape {list(shape)}, got "
                    f"{list(state.shape)}"
                )
            before.append(state)
        weights = [self.weight_ih, self.weight_hh]
        if self.bias_ih is not None and self.bias_hh is not None:
            weights += [self.bias_ih, self.bias_hh]
        cx = before[1] if len(before) == 2 else None
        _, *ends = _run(
            self._mode, rows, before[0], cx, weights, len(weights) == 4, [rows.size(0)], False
        )
        ends = ends[: len(states)]
        return ends if input.dim() == 2 else [end.squeeze(0) for end in ends]

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        if nonlinearity != "tanh":
            parts.append(f"nonlinearity={nonlinearity}")
        return ", ".join(parts)


class RNNCell(RNNCellBase):
    """One step of an RNN."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"RNNCell: expected 'nonlinearity' to be tanh or relu, got {nonlinearity!r}"
            )
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """input: [N, input_size] or [input_size]; hx: [N, hidden_size] or [hidden_size]."""
        self._mode = f"RNN_{self.nonlinearity.upper()}"
        return self._step(input, [hx])[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM."""

    _mode = "LSTM"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """input: [N, input_size] or [input_size]; hx: hidden state and cell, [N, hidden_size]."""
        hidden, cell = self._step(input, [None, None] if hx is None else list(hx))
        return hidden, cell


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    _mode = "GRU"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """input: [N, input_size] or [input_size]; hx: [N, hidden_size] or [hidden_size]."""
        return self._step(input, [hx])[0]
