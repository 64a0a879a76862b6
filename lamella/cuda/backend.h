// What Lamella requires of a backend (lamella/core/backend.h), for the devices "cuda".
#pragma once
#include "lamella/backend.h"
#include "lamella/lamella.h"

namespace lamella::cuda {

class Backend {
 public:
  void* allocate(size_t bytes, DeviceIndex device, void** block);
  void deallocate(void* data, size_t bytes, DeviceIndex device, void* block);
  void copy(lamella_place to, lamella_place from, size_t bytes, bool non_blocking);
  int device_count();
  DeviceIndex current_device();
  void set_device(DeviceIndex device);
  int64_t current_stream(DeviceIndex device);
  void set_stream(DeviceIndex device, int64_t stream);
  int64_t make_stream(DeviceIndex device, int priority);
  bool query_stream(DeviceIndex device, int64_t stream);
  void synchronize_stream(DeviceIndex device, int64_t stream);
  void synchronize_device(DeviceIndex device);
  void* make_event(DeviceIndex device, bool timing);
  void free_event(void* event);
  void record_event(void* event, DeviceIndex device, int64_t stream);
  void wait_event(void* event, DeviceIndex device, int64_t stream);
  bool query_event(void* event);
  void synchronize_event(void* event);
  double elapsed_time(void* start, void* end);
};

// The fallback on the CPU, which counts its calls by operator.
lamella_status counting_fallback(const lamella_kernel* kernel, const lamella_operator* op,
                                 uint64_t key_set, const lamella_value* arguments,
                                 lamella_value* returns) noexcept;
void count_fallback(const std::string& op);
// "aten::add.Tensor 3", a line for each operator that ran on the CPU.
std::string fallback_lines();
void reset_fallbacks();
// The fallback from a typed kernel, counted as well: counted_fallback<ops::zero_>(self).
template <class Op, class... A>
auto counted_fallback(A&&... arguments) -> decltype(Op::call(std::forward<A>(arguments)...)) {
  return lamella::detail::FallbackCall<typename Op::schema>::call_with(
      &counting_fallback, Op::handle().impl(), std::forward<A>(arguments)...);
}

// Calls f with each of the words, which end with a space.
template <class F>
void each_word(std::string_view words, const F& f) {
  for (; !words.empty(); words.remove_prefix(words.find(' ') + 1)) {
    f(std::string(words.substr(0, words.find(' '))));
  }
}

}  // namespace lamella::cuda
