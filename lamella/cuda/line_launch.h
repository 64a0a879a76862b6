// What fills the parameters of kernels along lines, and launches them.
#pragma once
#include "lamella/cuda/driver.h"
#include "lamella/cuda/launch.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/lamella.h"
// After the others, which have an LAMELLA_DEVICE of their own.
#include "lamella/cuda/kernels/team.h"

namespace lamella::cuda {

// ---- reduce.cpp ----
bool reduce(const char* name, ScalarType type, const TensorBase& in, uint64_t mask,
            const TensorBase& out, const void* params, const TensorBase& values);
// ---- scan.cpp ----
bool scan(int kind, const TensorBase& in, int64_t dim, const TensorBase& out);
bool cum_extreme(bool largest, const TensorBase& in, int64_t dim, const TensorBase& values,
                 const TensorBase& indices);
// ---- norm.cpp ----
void set_norms(native::DeviceLines& lines);
// ---- loss.cpp ----
void set_losses(native::DeviceLines& lines);

inline uint64_t address_of(const TensorBase& t) {
  return t.defined() ? reinterpret_cast<uint64_t>(t.const_data_ptr()) : 0;
}
// The kind of a dtype; -1: kernels do not read it.
int line_kind(ScalarType dtype);
// The suffix of the type that floating-point numbers of a dtype are computed in; null: none.
inline const char* wide_suffix(ScalarType dtype) {
  const int kind = line_kind(dtype);
  return kind < kF32 ? nullptr : kind == kF64 ? "f64" : "f32";
}
inline int64_t power_of_two(int64_t least) {
  int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// The elements of a dtype in 16 bytes where kernels read so many at once; `aligned`: of addresses
// and steps in bytes, combined by |.
inline int pack_of(ScalarType dtype, uint64_t aligned) {
  const int kind = line_kind(dtype);
  if (aligned % 16 != 0) return 1;
  return kind == kF32 ? 4 : kind == kF16 || kind == kBF16 ? 8 : 1;
}

// Launches the kernel name_suffix; false: there is none.
bool launch_lines(const TensorBase& on, const char* name, const char* suffix,
                  const void* parameters, const Shape& shape);

// The block of teams for lines of `length` elements, and blocks along x for all lines; see Note
// [Teams] in kernels/team.h.
Shape team_shape(bool across, int64_t lines, int64_t length);
// The blocks that keep a device busy.
int64_t busy_blocks(const TensorBase& on, const Shape& shape);

}  // namespace lamella::cuda
