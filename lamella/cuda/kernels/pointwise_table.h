// The table of pointwise kernels, which the host and the images share.
//
// A row is f(loop, Function, inputs, result, scalars, types, accepts). `result` is Same, Bool or
// Real (real of complex numbers); `scalars` counts the numbers of the operator. `types` are those
// of the kernels: I int32 and int64, U these and uint64, F float32 and float64, C complex64 and
// complex128, C64 complex64 alone; of halves and smaller integers see Note [One kernel for a
// function and a type]. `accepts` says whether bool (B) and uint64 (W, by kernels of int64 if there
// are none) are served.
#pragma once

#define LAMELLA_TYPES_I(k, ...) k(__VA_ARGS__, int32_t, i32) k(__VA_ARGS__, int64_t, i64)
#define LAMELLA_TYPES_U(k, ...) LAMELLA_TYPES_I(k, __VA_ARGS__) k(__VA_ARGS__, uint64_t, u64)
#define LAMELLA_TYPES_F(k, ...) k(__VA_ARGS__, float, f32) k(__VA_ARGS__, double, f64)
#define LAMELLA_TYPES_C64(k, ...) k(__VA_ARGS__, complex<float>, c64)
#define LAMELLA_TYPES_C(k, ...) \
  LAMELLA_TYPES_C64(k, __VA_ARGS__) k(__VA_ARGS__, complex<double>, c128)
#define LAMELLA_TYPES_IF(k, ...) LAMELLA_TYPES_I(k, __VA_ARGS__) LAMELLA_TYPES_F(k, __VA_ARGS__)
#define LAMELLA_TYPES_UF(k, ...) LAMELLA_TYPES_U(k, __VA_ARGS__) LAMELLA_TYPES_F(k, __VA_ARGS__)
#define LAMELLA_TYPES_FC(k, ...) LAMELLA_TYPES_F(k, __VA_ARGS__) LAMELLA_TYPES_C(k, __VA_ARGS__)
#define LAMELLA_TYPES_IFC(k, ...) LAMELLA_TYPES_IF(k, __VA_ARGS__) LAMELLA_TYPES_C(k, __VA_ARGS__)
#define LAMELLA_TYPES_UFC64(k, ...) \
  LAMELLA_TYPES_UF(k, __VA_ARGS__) LAMELLA_TYPES_C64(k, __VA_ARGS__)
#define LAMELLA_TYPES_ALL(k, ...)  \
  LAMELLA_TYPES_UF(k, __VA_ARGS__) \
  LAMELLA_TYPES_C(k, __VA_ARGS__) k(__VA_ARGS__, bool, b8)
#define LAMELLA_TYPES_MOVED(k, ...) \
  LAMELLA_TYPES_I(k, __VA_ARGS__) k(__VA_ARGS__, complex<double>, c128)

// clang-format off
#define LAMELLA_ARITHMETIC_LOOPS(f) \
  f(copy, Copy, 1, Same, 0, ALL, BW) \
  f(add, Add, 2, Same, 0, IFC, BW) \
  f(add_alpha, AddAlpha, 2, Same, 1, IF, BW) \
  f(sub, Sub, 2, Same, 0, IFC, W) \
  f(mul, Mul, 2, Same, 0, IFC, BW) \
  f(div_true, Div, 2, Same, 0, FC, ) \
  f(div_trunc, DivTrunc, 2, Same, 0, UF, W) \
  f(maximum, Maximum, 2, Same, 0, UF, BW) \
  f(minimum, Minimum, 2, Same, 0, UF, BW) \
  f(fmax, Fmax, 2, Same, 0, UF, BW) \
  f(fmin, Fmin, 2, Same, 0, UF, BW) \
  f(neg, Neg, 1, Same, 0, IFC, W) \
  f(abs, Abs, 1, Real, 0, UFC64, W) \
  f(sgn, Sign, 1, Same, 0, UFC64, BW) \
  f(sign, Sign, 1, Same, 0, UF, BW) \
  f(conj_physical, Conj, 1, Same, 0, C, ) \
  f(sqrt, Sqrt, 1, Same, 0, F, ) \
  f(rsqrt, Rsqrt, 1, Same, 0, F, ) \
  f(reciprocal, Reciprocal, 1, Same, 0, F, ) \
  f(pow_square, Square, 1, Same, 0, F, ) \
  f(pow_cube, Cube, 1, Same, 0, F, ) \
  f(pow_inverse_square, InverseSquare, 1, Same, 0, F, ) \
  f(copysign, CopySign, 2, Same, 0, F, ) \
  f(heaviside, Heaviside, 2, Same, 0, UF, BW) \
  f(gcd, Gcd, 2, Same, 0, U, W) \
  f(lcm, Lcm, 2, Same, 0, U, W) \
  f(addcmul, AddProduct, 3, Same, 1, IF, W) \
  f(addcdiv, AddQuotient, 3, Same, 1, F, )

#define LAMELLA_LOGIC_LOOPS(f) \
  f(eq, Eq, 2, Bool, 0, IFC, BW) \
  f(ne, Ne, 2, Bool, 0, IFC, BW) \
  f(lt, Lt, 2, Bool, 0, UF, BW) \
  f(le, Le, 2, Bool, 0, UF, BW) \
  f(gt, Gt, 2, Bool, 0, UF, BW) \
  f(ge, Ge, 2, Bool, 0, UF, BW) \
  f(logical_and, LogicalAnd, 2, Bool, 0, IFC, BW) \
  f(logical_or, LogicalOr, 2, Bool, 0, IFC, BW) \
  f(logical_xor, LogicalXor, 2, Bool, 0, IFC, BW) \
  f(logical_not, LogicalNot, 1, Bool, 0, IFC, BW) \
  f(bitwise_and, BitAnd, 2, Same, 0, I, BW) \
  f(bitwise_or, BitOr, 2, Same, 0, I, BW) \
  f(bitwise_xor, BitXor, 2, Same, 0, I, BW) \
  f(bitwise_not, BitNot, 1, Same, 0, I, BW) \
  f(bitwise_left_shift, ShiftLeft, 2, Same, 0, U, W) \
  f(bitwise_right_shift, ShiftRight, 2, Same, 0, U, W) \
  f(isnan, IsNan, 1, Bool, 0, IFC, BW) \
  f(isinf, IsInf, 1, Bool, 0, IFC, BW) \
  f(isfinite, IsFinite, 1, Bool, 0, IFC, BW) \
  f(isposinf, IsPosInf, 1, Bool, 0, IF, BW) \
  f(isneginf, IsNegInf, 1, Bool, 0, IF, BW) \
  f(signbit, SignBit, 1, Bool, 0, UF, BW) \
  f(where, Where, 3, Same, 0, MOVED, BW)

#define LAMELLA_ACTIVATION_LOOPS(f) \
  f(ceil, Ceil, 1, Same, 0, IF, W) \
  f(floor, Floor, 1, Same, 0, IF, W) \
  f(trunc, Trunc, 1, Same, 0, IF, W) \
  f(round, Round, 1, Same, 0, IF, W) \
  f(round_decimals, RoundDecimals, 1, Same, 2, F, ) \
  f(frac, Frac, 1, Same, 0, F, ) \
  f(replace, Replace, 1, Same, 1, UF, W) \
  f(nan_to_num, NanToNum, 1, Same, 3, IFC, BW) \
  f(clamp, Clamp, 3, Same, 0, UF, W) \
  f(clamp_scalar, ClampScalar, 1, Same, 2, UF, W) \
  f(clamp_min_scalar, ClampMinScalar, 1, Same, 1, UF, W) \
  f(clamp_max_scalar, ClampMaxScalar, 1, Same, 1, UF, W) \
  f(threshold, Threshold, 1, Same, 2, IF, ) \
  f(leaky_relu, LeakyRelu, 1, Same, 1, F, ) \
  f(hardswish, Hardswish, 1, Same, 0, F, ) \
  f(hardsigmoid, Hardsigmoid, 1, Same, 0, F, ) \
  f(hardshrink, Hardshrink, 1, Same, 1, F, ) \
  f(softshrink, Softshrink, 1, Same, 1, F, ) \
  f(prelu, Prelu, 2, Same, 0, F, ) \
  f(lerp, Lerp, 3, Same, 0, F, ) \
  f(lerp_scalar, LerpScalar, 2, Same, 1, F, ) \
  f(sigmoid_backward, SigmoidBackward, 2, Same, 0, F, ) \
  f(tanh_backward, TanhBackward, 2, Same, 0, F, ) \
  f(threshold_backward, ThresholdBackward, 2, Same, 1, IF, ) \
  f(leaky_relu_backward, LeakyReluBackward, 2, Same, 1, F, ) \
  f(hardtanh_backward, HardtanhBackward, 2, Same, 2, F, ) \
  f(hardswish_backward, HardswishBackward, 2, Same, 0, F, ) \
  f(hardsigmoid_backward, HardsigmoidBackward, 2, Same, 0, F, ) \
  f(shrink_backward, ShrinkBackward, 2, Same, 1, F, ) \
  f(logit_backward, LogitBackward, 2, Same, 1, F, )

#define LAMELLA_ELEMENTARY_LOOPS(f) \
  f(exp, Exp, 1, Same, 0, F, ) \
  f(exp2, Exp2, 1, Same, 0, F, ) \
  f(expm1, Expm1, 1, Same, 0, F, ) \
  f(sinh, Sinh, 1, Same, 0, F, ) \
  f(cosh, Cosh, 1, Same, 0, F, ) \
  f(tanh, Tanh, 1, Same, 0, F, ) \
  f(sigmoid, Sigmoid, 1, Same, 0, F, ) \
  f(log, Log, 1, Same, 0, F, ) \
  f(log2, Log2, 1, Same, 0, F, ) \
  f(log10, Log10, 1, Same, 0, F, ) \
  f(log1p, Log1p, 1, Same, 0, F, ) \
  f(sin, Sin, 1, Same, 0, F, ) \
  f(cos, Cos, 1, Same, 0, F, ) \
  f(tan, Tan, 1, Same, 0, F, ) \
  f(asin, Asin, 1, Same, 0, F, ) \
  f(acos, Acos, 1, Same, 0, F, ) \
  f(atan, Atan, 1, Same, 0, F, ) \
  f(atan2, Atan2, 2, Same, 0, F, ) \
  f(asinh, Asinh, 1, Same, 0, F, ) \
  f(acosh, Acosh, 1, Same, 0, F, ) \
  f(atanh, Atanh, 1, Same, 0, F, ) \
  f(hypot, Hypot, 2, Same, 0, F, ) \
  f(silu, Silu, 1, Same, 0, F, ) \
  f(silu_backward, SiluBackward, 2, Same, 0, F, ) \
  f(logaddexp, LogAddExp, 2, Same, 0, F, ) \
  f(logaddexp2, LogAddExp2, 2, Same, 0, F, ) \
  f(softplus, Softplus, 1, Same, 2, F, ) \
  f(softplus_backward, SoftplusBackward, 2, Same, 2, F, ) \
  f(elu, Elu, 1, Same, 3, F, ) \
  f(elu_backward, EluBackward, 2, Same, 4, F, ) \
  f(mish, Mish, 1, Same, 0, F, ) \
  f(mish_backward, MishBackward, 2, Same, 0, F, ) \
  f(log_sigmoid, LogSigmoid, 1, Same, 0, F, ) \
  f(log_sigmoid_backward, LogSigmoidBackward, 2, Same, 0, F, ) \
  f(gelu, Gelu, 1, Same, 0, F, ) \
  f(gelu_tanh, GeluTanh, 1, Same, 0, F, ) \
  f(gelu_backward, GeluBackward, 2, Same, 0, F, ) \
  f(gelu_tanh_backward, GeluTanhBackward, 2, Same, 0, F, )

#define LAMELLA_SPECIAL_LOOPS(f) \
  f(erf, Erf, 1, Same, 0, F, ) \
  f(erfc, Erfc, 1, Same, 0, F, ) \
  f(erfcx, Erfcx, 1, Same, 0, F, ) \
  f(erfinv, Erfinv, 1, Same, 0, F, ) \
  f(ndtri, Ndtri, 1, Same, 0, F, ) \
  f(log_ndtr, LogNdtr, 1, Same, 0, F, ) \
  f(lgamma, Lgamma, 1, Same, 0, F, ) \
  f(digamma, Digamma, 1, Same, 0, F, ) \
  f(trigamma, Trigamma, 1, Same, 0, F, ) \
  f(i0, I0, 1, Same, 0, F, ) \
  f(i0e, I0e, 1, Same, 0, F, ) \
  f(i1, I1, 1, Same, 0, F, ) \
  f(i1e, I1e, 1, Same, 0, F, ) \
  f(entr, Entr, 1, Same, 0, F, ) \
  f(xlogy, Xlogy, 2, Same, 0, F, ) \
  f(xlog1py, Xlog1py, 2, Same, 0, F, ) \
  f(sinc, Sinc, 1, Same, 0, F, ) \
  f(logit, Logit, 1, Same, 1, F, ) \
  f(nextafter, NextAfter, 2, Same, 1, F, ) \
  f(pow, Pow, 2, Same, 0, UF, W) \
  f(fmod, Fmod, 2, Same, 0, UF, W) \
  f(remainder, Remainder, 2, Same, 0, UF, W) \
  f(div_floor, DivFloor, 2, Same, 0, UF, W) \
  f(floordiv, FloorQuotient, 2, Same, 0, UF, W)
// clang-format on
