// What launched kernels found wrong with the contents of index tensors.
//
// Note [Indices on the device]
//   The host cannot see the contents of a device's index tensors without waiting, so kernels check
//   them: where an index is out of range, nothing is written (a result's element becomes 0), and
//   the index goes to a slot of its launch in memory of the host. The next wait for the device
//   raises what the CPU's operator would have raised, with the device in front; with
//   LAMELLA_CUDA_BLOCKING=1 the operator itself does. The device can be used on.
#pragma once
#include <cstdint>

namespace lamella::cuda {

enum class IndexText : uint8_t {
  kRange,     // expected 'index' in [-5, 4], got 7
  kSource,    // expected 'source' to have at least 5 elements, got 3
  kElements,  // expected the elements of 'indices' to be in [0, 5), got 7
};
struct IndexSlot {
  uint64_t slot, any;  // for kernels: Note [Indices on the device]
};
// A slot for a launch whose indices must lie in [least, size). `op` must live on. The device's
// context must be current.
IndexSlot report_slot(int device, const char* op, IndexText text, int64_t least, int64_t size);
// Throws IndexError if a launch that is done found an index out of range.
void check_reports(int device);

}  // namespace lamella::cuda
