// Pointwise loops of backends: one function for all loops of a device type. It gets the operands as
// plain numbers, so it needs no symbol of an iterator. Internal.
#pragma once
#include <cstdint>

#include "lamella/core/device.h"
#include "lamella/core/scalar.h"
#include "lamella/core/scalar_type.h"

namespace lamella::native {

inline constexpr int kLoopOperands = 4;
inline constexpr int kLoopDims = 12;

struct DeviceLoopCall {
  const char* name;                // of the loop: "add"
  Device device{DeviceType::CPU};  // of the output
  int count;                       // of operands; the first is the output
  int ndim;                        // innermost dimension first, merged
  int64_t numel;
  const Scalar* scalars;  // the operator's numbers, or null
  ScalarType common;      // the type to compute in; Undefined: of the inputs
  int64_t sizes[kLoopDims];
  struct Operand {
    void* data;
    ScalarType dtype;
    bool on_host;                // `data` is one element in memory of the host
    int64_t strides[kLoopDims];  // in bytes
  } operands[kLoopOperands];
};
struct DeviceLoops {
  bool (*has)(const char* name);  // whether there is a loop for some dtypes
  // Launches a loop; false: there is none for these operands, and nothing was done.
  bool (*run)(const DeviceLoopCall& call);
};

// The kernel of the pointwise loop `name` on a device; null: there is none.
void* device_loop(const char* name, DeviceType type);

}  // namespace lamella::native
