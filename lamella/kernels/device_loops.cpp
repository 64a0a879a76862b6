// Turns iterators into calls of a backend's loops.
#include "lamella/kernels/device_loops.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "lamella/core/fork.h"
#include "lamella/kernels/device_kernels.h"
#include "lamella/kernels/tensor_iterator.h"

namespace lamella::native {
namespace {

constexpr size_t kNames = 192;

fork::Held<std::mutex> naming{fork::Level::kCore};
const char* loop_names[kNames];  // guarded by `naming` until a loop's function is handed out
size_t names_used = 0;

void run_on_device(const char* name, TensorIteratorBase& iter, const Scalar* scalars) {
  DeviceLoopCall call;  // the arrays are filled as far as they are read
  call.name = name;
  call.count = iter.ntensors();
  call.numel = iter.numel();
  if (call.numel == 0) return;
  bool fits = call.count <= kLoopOperands && iter.noutputs() == 1 && iter.ndim() <= kLoopDims;
  if (fits) {
    call.device = iter.device(0);
    call.ndim = iter.ndim();
    call.scalars = scalars;
    call.common = iter.common_dtype();
    for (int d = 0; d < call.ndim; ++d) call.sizes[d] = iter.shape()[static_cast<size_t>(d)];
    for (int i = 0; i < call.count; ++i) {
      auto& operand = call.operands[i];
      operand.data = iter.data_ptr(i);
      operand.dtype = iter.dtype(i);
      operand.on_host = i == iter.number_at() || iter.is_cpu_scalar(i);
      for (int d = 0; d < call.ndim; ++d) operand.strides[d] = iter.stride(i, d);
    }
  }
  LAMELLA_CHECK_NOT_IMPLEMENTED(fits && device_kernels(iter.device(0).type()).loops->run(call),
                                name, ": expected operands with a loop for ", iter.device(0),
                                ", got none for ", iter.common_dtype());
}

template <size_t I>
void named_loop(TensorIteratorBase& iter, const Scalar* scalars) {
  run_on_device(loop_names[I], iter, scalars);
}
template <size_t... I>
pointwise_fn loop_at(size_t at, std::index_sequence<I...>) {
  static constexpr pointwise_fn all[] = {&named_loop<I>...};
  return all[at];
}

}  // namespace

void* device_loop(const char* name, DeviceType type) {
  const DeviceLoops* loops = device_kernels(type).loops;
  if (loops == nullptr || !loops->has(name)) return nullptr;
  std::lock_guard lock(naming);
  size_t at = 0;
  while (at < names_used && std::strcmp(loop_names[at], name) != 0) ++at;
  if (at == kNames) return nullptr;
  if (at == names_used) loop_names[names_used++] = name;
  return reinterpret_cast<void*>(loop_at(at, std::make_index_sequence<kNames>()));
}

}  // namespace lamella::native
