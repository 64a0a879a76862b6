// Vector functions that machine code calls: those of the kernels, for each CPU capability.
#pragma once
#include <cstdint>
#include <span>

namespace lamella::hlo::compiler {

// Functions of vectors as wide as the capability's registers, one for float and one for double.
// They take one vector or two and return one, all in registers.
struct VectorFunction {
  const char* name;
  int operands;
  void* f32;
  void* f64;
};
struct VectorFunctions {
  int bytes = 0;  // of a vector
  std::span<const VectorFunction> all;
};

// For a CPU capability, as native::code_capability() counts.
const VectorFunctions& vector_functions(uint32_t capability);

// What each compilation of vector_functions.cpp gives.
VectorFunctions vector_functions_DEFAULT();
VectorFunctions vector_functions_AVX2();
VectorFunctions vector_functions_AVX512();

}  // namespace lamella::hlo::compiler
