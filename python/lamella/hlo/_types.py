"""ElementType, and the dataclasses of dimension numbers that operations take."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence


class ElementType(str, enum.Enum):
    """The element types of HLO arrays. Members compare equal to their names."""

    PRED = "pred"
    S1 = "s1"
    S2 = "s2"
    S4 = "s4"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    U1 = "u1"
    U2 = "u2"
    U4 = "u4"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F4E2M1FN = "f4e2m1fn"
    F8E3M4 = "f8e3m4"
    F8E4M3 = "f8e4m3"
    F8E4M3FN = "f8e4m3fn"
    F8E4M3B11FNUZ = "f8e4m3b11fnuz"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0FNU = "f8e8m0fnu"
    BF16 = "bf16"
    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"

    def __str__(self) -> str:
        return self.value


@dataclasses.dataclass
class DotDimensionNumbers:
    """The contracting and batch dimensions of the operands of dot_general()."""

    lhs_contracting_dimensions: Sequence[int] = ()
    rhs_contracting_dimensions: Sequence[int] = ()
    lhs_batch_dimensions: Sequence[int] = ()
    rhs_batch_dimensions: Sequence[int] = ()


@dataclasses.dataclass
class GatherDimensionNumbers:
    """The dimension numbers of gather()."""

    offset_dims: Sequence[int] = ()
    collapsed_slice_dims: Sequence[int] = ()
    start_index_map: Sequence[int] = ()
    index_vector_dim: int = 0
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()


@dataclasses.dataclass
class ScatterDimensionNumbers:
    """The dimension numbers of scatter()."""

    update_window_dims: Sequence[int] = ()
    inserted_window_dims: Sequence[int] = ()
    scatter_dims_to_operand_dims: Sequence[int] = ()
    index_vector_dim: int = 0
    input_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


@dataclasses.dataclass
class ConvolutionDimensionNumbers:
    """The dimension numbers of convolutions."""

    input_batch_dimension: int = 0
    input_feature_dimension: int = 1
    input_spatial_dimensions: Sequence[int] = (2, 3)
    kernel_output_feature_dimension: int = 0
    kernel_input_feature_dimension: int = 1
    kernel_spatial_dimensions: Sequence[int] = (2, 3)
    output_batch_dimension: int = 0
    output_feature_dimension: int = 1
    output_spatial_dimensions: Sequence[int] = (2, 3)
