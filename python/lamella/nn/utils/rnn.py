"""Sequences of different lengths: packed without padding, and padded to one length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import lamella
from lamella import Tensor
from lamella.nn import functional as F

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """The rows of several sequences ordered by time step, within a step by falling length.

    data: [total, ...]; batch_sizes: the number of sequences with a row at each step;
    sorted_indices: the sequences by falling length (None: they are in order); unsorted_indices:
    its inverse.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:  # a pair (data, batch_sizes)
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "PackedSequence: expected 'batch_sizes' to be on the CPU, got "
                f"{batch_sizes.device}"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor) -> PackedSequence:
        def beside(index: Tensor | None) -> Tensor | None:
            return None if index is None else index.to(data.device)

        return type(self)(
            data, self.batch_sizes, beside(self.sorted_indices), beside(self.unsorted_indices)
        )

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with data.to(...)."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data)

    def cpu(self) -> PackedSequence:
        """The same on the CPU."""
        return self.to("cpu")

    def double(self) -> PackedSequence:
        """The same in float64."""
        return self.to(dtype=lamella.float64)

    def float(self) -> PackedSequence:
        """The same in float32."""
        return self.to(dtype=lamella.float32)

    def half(self) -> PackedSequence:
        """The same in float16."""
        return self.to(dtype=lamella.float16)

    def long(self) -> PackedSequence:
        """The same in int64."""
        return self.to(dtype=lamella.int64)

    def int(self) -> PackedSequence:
        """The same in int32."""
        return self.to(dtype=lamella.int32)

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a CUDA device."""
        return self.data.device.type == "cuda"


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation of [0, n)."""
    if permutation is None:
        return None
    places = lamella.arange(permutation.numel(), device=permutation.device)
    return lamella.empty_like(permutation).scatter_(0, permutation, places)


def _going_on(lengths: Tensor, steps: int) -> Tensor:
    """[steps, N]: whether a sequence has a row at a step."""
    return lamella.arange(steps).unsqueeze(1) < lengths


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """The rows of a padded batch [T, N, ...], or [N, T, ...], without the padding.

    lengths: the lengths of the sequences, on the CPU; they must not increase if enforce_sorted,
    else the sequences are sorted.
    """
    lengths = lamella.as_tensor(lengths, dtype=lamella.int64).cpu()
    sequences = input.size(0 if batch_first else 1)
    if lengths.dim() != 1 or lengths.size(0) != sequences:
        raise RuntimeError(
            f"pack_padded_sequence: expected {sequences} 'lengths', got {list(lengths.shape)}"
        )
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = lamella.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    found = lengths.tolist()
    if found != sorted(found, reverse=True):
        raise RuntimeError(
            "pack_padded_sequence: expected 'lengths' to fall, got "
            f"{found}; with enforce_sorted=False the sequences are sorted"
        )
    if not found or found[-1] <= 0:
        raise RuntimeError(
            f"pack_padded_sequence: expected 'lengths' to be at least 1, got {found}"
        )
    if batch_first:
        input = input.transpose(0, 1)
    if found[0] > input.size(0):
        raise RuntimeError(
            f"pack_padded_sequence: expected 'lengths' to be at most {input.size(0)}, got {found}"
        )
    mask = _going_on(lengths, found[0])
    return PackedSequence(
        input[: found[0]][mask.to(input.device)], mask.sum(1), sorted_indices, None
    )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded batch [T, N, ...], or [N, T, ...], of packed sequences, and their lengths.

    total_length: the T wanted, at least that of the longest sequence.
    """
    data, batch_sizes = sequence.data, sequence.batch_sizes
    steps = batch_sizes.size(0)
    if total_length is not None and total_length < steps:
        raise ValueError(
            f"pad_packed_sequence: expected 'total_length' to be at least {steps}, got "
            f"{total_length}"
        )
    count = int(batch_sizes[0].item())
    mask = lamella.arange(count) < batch_sizes.unsqueeze(1)
    lengths = mask.sum(0)
    length = steps if total_length is None else total_length
    outer = (count, length) if batch_first else (length, count)
    padded = data.new_full((*outer, *data.shape[1:]), padding_value)
    steps_of, sequences_of = (index.to(data.device) for index in mask.nonzero().unbind(1))
    places = (sequences_of, steps_of) if batch_first else (steps_of, sequences_of)
    padded = padded.index_put(places, data)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences [L, ...] as one tensor [T, N, ...], or [N, T, ...], for the longest length T."""
    if padding_side not in ("left", "right"):
        raise ValueError(
            f"pad_sequence: expected 'padding_side' to be left or right, got {padding_side!r}"
        )
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: expected 'sequences' to be tensors, got {type(sequences).__name__}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: expected 'sequences' not to be empty")
    longest = max(sequence.size(0) for sequence in sequences)
    made = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        ends = [missing, 0] if padding_side == "left" else [0, missing]
        edges = [0, 0] * (sequence.dim() - 1) + ends
        made.append(F.pad(sequence, edges, "constant", padding_value))
    return lamella.stack(made, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences [L, ...] of a padded batch."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    parts = zip(padded_sequences.unbind(0), lengths.tolist())
    return [sequence[: int(length)] for sequence, length in parts]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences [L, ...]; their lengths must not increase if enforce_sorted."""
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences [L, ...] that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
