// The profiler: records which operators ran, and when. Internal; users have lamella/profiler.h.
//
// Note [A layer that only looks]
//   A thread that is profiled includes the key PreDispatch, above all other layers, in every call.
//   Its one boxed kernel notes the time, lets the call go on without the key, and notes the time
//   again. Nothing is tested while no profile runs: the key is not in any key set. Threads that
//   begin to call operators while a profile runs include it from their first call on. A thread that
//   still includes it after the profile takes it out at its next call.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/macros.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella::profile {

inline constexpr uint64_t kKey =
    lamella::detail::functionality_bit(lamella::detail::Functionality::PreDispatch);

struct Event {
  std::string name;
  const char* kind;
  std::string arguments;
  int64_t start = 0, end = 0;  // nanoseconds
  int64_t own = 0;             // set by find_own_times()
  uint32_t thread = 0;
};

LAMELLA_PRIVATE_API extern std::atomic<bool> is_running;
LAMELLA_PRIVATE_API int64_t now();
LAMELLA_PRIVATE_API void add(std::string name, const char* kind, std::string arguments,
                             int64_t start);

// A named range of a profile that ends with the scope. The name is built only while a profile runs.
class Span {
 public:
  explicit Span(const char* kind) : kind_(kind) {
    if (LAMELLA_UNLIKELY(is_running.load(std::memory_order_relaxed))) start_ = now();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  template <class F>  // () -> std::string
  void end(F&& name) {
    if (LAMELLA_UNLIKELY(start_ >= 0)) add(name(), kind_, {}, start_);
    start_ = -1;
  }

 private:
  const char* kind_;
  int64_t start_ = -1;
};

// In text.cpp. Events are sorted by start; an event comes before the events nested in it.
void find_own_times(std::vector<Event>& events);
std::string table_of(const std::vector<Event>& events, std::string_view sort_by, int64_t rows);
std::string trace_of(const std::vector<Event>& events);

}  // namespace lamella::profile
