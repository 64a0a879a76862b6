// Kernels of the embedded images, by name.
#pragma once
#include <array>
#include <cstddef>

#include "lamella/core/tensor_base.h"
#include "lamella/cuda/kernels/pointwise_parameters.h"

namespace lamella::cuda {

// ---- Dtypes and suffixes of names ----

// The dtypes of the kinds.
inline constexpr ScalarType kKindDtypes[] = {
    ScalarType::Bool,   ScalarType::Byte,         ScalarType::Char,         ScalarType::Short,
    ScalarType::Int,    ScalarType::Long,         ScalarType::Float,        ScalarType::Double,
    ScalarType::Half,   ScalarType::BFloat16,     ScalarType::UInt16,       ScalarType::UInt32,
    ScalarType::UInt64, ScalarType::ComplexFloat, ScalarType::ComplexDouble};
inline constexpr auto kDtypeKinds = [] {
  std::array<int, static_cast<size_t>(ScalarType::NumOptions)> kinds{};
  kinds.fill(-1);
  for (int kind = kBool; kind <= kC128; ++kind) {
    kinds[static_cast<size_t>(kKindDtypes[kind])] = kind;
  }
  return kinds;
}();
// The kind of a dtype; -1: kernels do not read it.
inline int kind_of(ScalarType dtype) { return kDtypeKinds[static_cast<size_t>(dtype)]; }
const char* suffix_of_kind(int kind);          // "b8", "f32"; NULL for -1
const char* suffix_of_type(ScalarType dtype);  // NULL: kernels do not compute with it
const char* suffix_of_bytes(size_t bytes);     // "b1" to "b16"

// The address of a tensor's elements; 0: it is undefined.
inline uint64_t address_of(const TensorBase& t) {
  return t.defined() ? reinterpret_cast<uint64_t>(t.const_data_ptr()) : 0;
}

// ---- Kernels ----

// The kernel on a device, whose context must be current; NULL if no image has it.
void* find_kernel(int device, const char* name);
// The same for a name and a suffix, joined by "_" if there is one; for every launch.
void* find_kernel(int device, const char* name, const char* suffix);
// A kernel of an image that a program brings. Equal images are loaded once, and stay loaded.
void* load_kernel(int device, const char* image, const char* name);
// Launches a kernel of one parameter, a structure, on the current stream, with `items` or fewer
// threads. The device's context must be current; `name` must live on.
void launch(int device, void* kernel, const char* name, const void* parameters, int64_t items);

// The blocks of a launch, the threads of a block, and the bytes of its dynamic shared memory. Grids
// have at most 2^31 - 1 blocks along x, 65535 along y and z.
struct Shape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
};
// Launches a kernel of blocks: Note [Kernels of blocks] in kernels/device.h.
void launch(int device, void* kernel, const char* name, const void* parameters, const Shape& shape);
// Launches the kernel of a name and a suffix. False: there is none, or no suffix.
bool launch_named(int device, const char* name, const char* suffix, const void* parameters,
                  const Shape& shape);
bool launch_named(int device, const char* name, const char* suffix, const void* parameters,
                  int64_t items);
// Copies memory of the device on the current stream; the device's context must be current.
void copy_bytes(int device, void* to, const void* from, size_t bytes);

}  // namespace lamella::cuda
