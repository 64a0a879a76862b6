"""The rows of `make bench kernels`."""

from __future__ import annotations

from kernel_rows.moving import index_rows, layout_rows, random_rows
from kernel_rows.networks import gradient_rows, network_rows
from kernel_rows.pointwise import binary_rows, other_dtype_rows, unary_rows
from kernel_rows.products import product_rows, sparse_rows
from kernel_rows.rarer import rarer_rows
from kernel_rows.reducing import reduction_rows, sorting_rows
from kernel_rows.reducing_kinds import reduction_kind_rows
from kernel_rows.row import Row
from kernel_rows.special import special_rows
from kernel_rows.transforms import transform_rows

__all__ = ["Row", "rows"]


def rows() -> list[Row]:
    found: list[Row] = []
    for part in (
        unary_rows,
        binary_rows,
        other_dtype_rows,
        reduction_rows,
        reduction_kind_rows,
        sorting_rows,
        index_rows,
        layout_rows,
        random_rows,
        product_rows,
        network_rows,
        gradient_rows,
        transform_rows,
        special_rows,
        sparse_rows,
        rarer_rows,
    ):
        found += part()
    return found
