"""Random matrices of LAPACK's four types, and the allowed distance between two results."""

import numpy as np


def is_complex(dtype):
    return np.issubdtype(dtype, np.complexfloating)


def real_of(dtype):
    return np.zeros((), dtype).real.dtype


def random(rng, shape, dtype):
    values = rng.standard_normal(shape)
    if is_complex(dtype):
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def close(got, want, dtype, scale=1.0):
    tolerance = 2e-4 if real_of(dtype) == np.float32 else 1e-10
    np.testing.assert_allclose(got, want, atol=tolerance * scale, rtol=tolerance)
