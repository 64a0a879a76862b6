"""Numbers of dimensions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


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
