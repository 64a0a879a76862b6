// The bodies of the LAPACK targets, each for float, double and their complex types. Operands and
// results are in JAX's order; `info` is LAPACK's info number for each matrix.
#pragma once
#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::hlo::lapack {

#define LAMELLA_HANDLER(name) \
  template <class T>          \
  void name(const ffi::CallFrame& frame);
LAMELLA_HANDLER(potrf)  // (a; uplo) -> a, info
LAMELLA_HANDLER(getrf)  // (a) -> a, pivots counted from 1, info
LAMELLA_HANDLER(geqrf)  // (a) -> a, tau
LAMELLA_HANDLER(geqp3)  // (a, jpvt) -> a, jpvt, tau
LAMELLA_HANDLER(orgqr)  // (a, tau) -> a
LAMELLA_HANDLER(ormqr)  // (a, tau, c; left, transpose) -> c
LAMELLA_HANDLER(gehrd)  // (a; low, high) -> a, tau, info
LAMELLA_HANDLER(sytrd)  // (a; uplo) -> a, d, e, tau, info
LAMELLA_HANDLER(gesdd)  // (a; mode) -> a, s, u, vt, info
LAMELLA_HANDLER(gesvd)  // (a; mode) -> a, s, u, vt, info
LAMELLA_HANDLER(syevd)  // (a; mode, uplo) -> a, w, info
LAMELLA_HANDLER(geev)   // (a; compute_left, compute_right) -> wr, wi or w, vl, vr, info
LAMELLA_HANDLER(gees)   // (a; mode, sort) -> a, vs, wr, wi or w, selected, info
LAMELLA_HANDLER(trsm)   // (a, b; side, uplo, trans_x, diag) -> b
LAMELLA_HANDLER(gtsv)   // (dl, d, du, b) -> dl, d, du, b, info
#undef LAMELLA_HANDLER
// (dl, d, du, b) -> x, for any of the four types; see solve.cpp.
void tridiagonal_perturbed(const ffi::CallFrame& frame);

// Instantiates a body for the four types, in the file that defines it.
#define LAMELLA_FOR_FOUR_TYPES(name)                       \
  template void name<float>(const ffi::CallFrame& frame);  \
  template void name<double>(const ffi::CallFrame& frame); \
  template void name<c64>(const ffi::CallFrame& frame);    \
  template void name<c128>(const ffi::CallFrame& frame);

}  // namespace lamella::hlo::lapack
