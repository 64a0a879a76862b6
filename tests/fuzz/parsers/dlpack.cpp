// DLPack structures from another library: refused, or a tensor whose elements all lie within the
// address space.
#include "lamella/core/dlpack.h"

#include "lamella/core/error.h"
#include "target.h"

namespace lamella::fuzz {
namespace {

using namespace lamella::dlpack;

alignas(64) std::byte memory[4096];
int ended = 0;

// Checks the first and the last byte that the tensor can reach.
void check_reach(const TensorBase& tensor) {
  if (tensor.numel() == 0) return;
  __int128 low = 0, high = 0;
  const lamella_tensor* raw = tensor.impl();
  for (int32_t d = 0; d < raw->ndim; ++d) {
    if (raw->sizes[d] < 0) found("a tensor of a negative size");
    __int128 step = static_cast<__int128>(raw->sizes[d] - 1) * raw->strides[d];
    (step < 0 ? low : high) += step;
  }
  auto item = static_cast<__int128>(tensor.itemsize());
  auto base = static_cast<__int128>(reinterpret_cast<uintptr_t>(raw->data));
  __int128 first = base + low * item, last = base + (high + 1) * item - 1;
  if (first < 0 || last > static_cast<__int128>(INT64_MAX)) {
    found("a tensor with elements beyond the address space");
  }
}

template <class Form>
void take(Form& managed, TensorBase (*import)(Form*)) {
  ended = 0;
  managed.deleter = [](Form*) { ++ended; };
  bool taken = true;
  try {
    TensorBase tensor = import(&managed);
    check_reach(tensor);
  } catch (const Error&) {
    taken = false;
  }
  if (ended != (taken ? 1 : 0)) found("a deleter that did not run once");
}

}  // namespace

std::vector<std::string> seeds() {
  // Version, device, dtype, dimensions, then sizes and strides as Bytes reads them.
  std::string plain{1, 0, 1, 0, 2, 32, 1, 2};
  return {plain + "\x02\x03\x03\x01", std::string{0, 0, 1, 0, 0, 64, 1, 1, 5, 1},
          std::string{1, 1, 1, 0, 5, 64, 1, 3, 1, 2, 3, 4, 5, 6, 7, 8}};
}
std::vector<std::string> words() { return {}; }

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella::fuzz;
  Bytes in(data, size);
  bool versioned = in.below(2) != 0, row_major = in.below(4) == 0;
  DLTensor field{};
  field.device = {static_cast<DLDeviceType>(in.below(16)),
                  in.byte() < 250 ? 0 : in.take<int32_t>()};
  field.dtype = {static_cast<uint8_t>(in.below(13)), in.byte(), in.byte()};
  field.ndim = in.byte() % 5;
  if (in.byte() > 240) field.ndim = in.take<int32_t>() % 100000;
  std::vector<int64_t> sizes = in.numbers(static_cast<size_t>(field.ndim < 0 ? 0 : field.ndim));
  std::vector<int64_t> strides = in.numbers(sizes.size());
  field.shape = in.byte() == 255 ? nullptr : sizes.data();
  field.strides = row_major ? nullptr : strides.data();
  field.byte_offset = in.byte() < 200 ? in.byte() : in.take<uint64_t>();
  field.data = in.byte() == 255 ? nullptr : memory;
  if (versioned) {
    DLManagedTensorVersioned managed{};
    managed.version.major = in.byte() < 240 ? 1 : in.byte();
    managed.flags = in.byte() % 4;
    managed.dl_tensor = field;
    take(managed, lamella::dlpack::import_tensor_versioned);
  } else {
    DLManagedTensor managed{};
    managed.dl_tensor = field;
    take(managed, lamella::dlpack::import_tensor);
  }
  return 0;
}
