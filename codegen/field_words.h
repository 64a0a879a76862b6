// The allowed words of fields that take one of a few.
#pragma once

#include <array>
#include <string_view>

namespace lamella::codegen {

// Under python_module.
inline constexpr std::array<std::string_view, 6> kModules = {"nn",     "fft",     "linalg",
                                                             "sparse", "special", "nested"};
// Keys under ufunc_inner_loop, and the dtypes behind them.
inline constexpr std::array<std::string_view, 7> kUfuncKeys = {
    "Generic",           "ScalarOnly", "CUDAFunctor", "CUDAFunctorOnOther",
    "CUDAFunctorOnSelf", "CPUScalar",  "CPUVector"};
inline constexpr std::array<std::string_view, 24> kUfuncTypes = {"Byte",
                                                                 "Char",
                                                                 "Short",
                                                                 "Int",
                                                                 "Long",
                                                                 "Half",
                                                                 "Float",
                                                                 "Double",
                                                                 "ComplexHalf",
                                                                 "ComplexFloat",
                                                                 "ComplexDouble",
                                                                 "Bool",
                                                                 "BFloat16",
                                                                 "Float8_e5m2",
                                                                 "Float8_e4m3fn",
                                                                 "Float8_e5m2fnuz",
                                                                 "Float8_e4m3fnuz",
                                                                 "All",
                                                                 "AllAndComplex",
                                                                 "FloatingAndComplex",
                                                                 "Integral",
                                                                 "Floating",
                                                                 "Complex",
                                                                 "AllAndComplexExceptBool"};

}  // namespace lamella::codegen
