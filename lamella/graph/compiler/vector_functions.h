// Vector functions that machine code calls: the kernels' functions, for each CPU capability.
#pragma once
#include <cstdint>
#include <span>

namespace lamella::hlo::compiler {

// A function of vectors as wide as the capability's registers, for float and for double. It takes
// one or two vectors and returns one, all in registers.
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

// The functions for a CPU capability, numbered as by native::code_capability().
const VectorFunctions& vector_functions(uint32_t capability);

// Defined by the compilations of vector_functions.cpp, one each.
namespace DEFAULT {
VectorFunctions vector_functions();
}
namespace AVX2 {
VectorFunctions vector_functions();
}
namespace AVX512 {
VectorFunctions vector_functions();
}

}  // namespace lamella::hlo::compiler
