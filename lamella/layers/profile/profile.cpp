// Recording events, and the C functions.
#include "lamella/layers/profile/profile.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "lamella/abi/profiler.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/core/scalar_type.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/layer_fallback.h"
#include "lamella/dispatch/registry.h"
#include "lamella/dispatch/signature.h"

struct lamella_profile {
  std::vector<lamella::profile::Event> events;
  std::string table, trace;
};

namespace lamella::profile {

std::atomic<bool> is_running{false};

namespace {

std::mutex mutex;  // guards the variables below
std::vector<Event> events;
int64_t beginning = 0;
std::atomic<uint32_t> threads{0};
thread_local uint32_t this_thread = 0;
fork::Once registered;

[[maybe_unused]] const bool held = (fork::hold(fork::Level::kLayers, &mutex), true);

// Ranges that a thread has entered. A pointer, as the library's thread-local block has no room for
// destructors; given back when the last range is left.
struct Range {
  std::string name;
  int64_t start;
};
thread_local std::vector<Range>* ranges = nullptr;

std::string text_of(const lamella_operator* op, const lamella_value* arguments) {
  std::string text;
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    if (arguments[i].tag != LAMELLA_TENSOR && arguments[i].tag != LAMELLA_TENSOR_LIST) continue;
    each_tensor(arguments[i], [&](const lamella_tensor* tensor) {
      if (tensor == nullptr) return;
      if (!text.empty()) text += ", ";
      text += dtype_name(static_cast<ScalarType>(tensor->scalar_type));
      text += '[';
      for (int32_t d = 0; d < tensor->ndim; ++d) {
        if (d != 0) text += ", ";
        text += std::to_string(tensor->sizes[d]);
      }
      text += ']';
    });
  }
  return text;
}

lamella_status run(const lamella_kernel*, const lamella_operator* op, uint64_t key_set,
                   const lamella_value* arguments, lamella_value* returns) {
  uint64_t keys = key_set & ~kKey;
  if (!is_running.load(std::memory_order_relaxed)) {
    lamella_thread.included &= ~kKey;
    return abi::call_boxed(op, keys, arguments, returns);
  }
  std::string given;
  try {
    given = text_of(op, arguments);  // before the call, which may change them
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
  int64_t start = now();
  lamella_status status = abi::call_boxed(op, keys, arguments, returns);
  try {
    add(entry_of(op)->full_name(), "operator", std::move(given), start);
  } catch (...) {
    // Out of memory: the event is dropped, since the call itself has completed.
  }
  return status;
}

}  // namespace

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void add(std::string name, const char* kind, std::string arguments, int64_t start) {
  int64_t end = now();
  if (this_thread == 0) this_thread = ++threads;
  std::lock_guard lock(mutex);
  if (!is_running.load(std::memory_order_relaxed)) return;
  events.push_back({std::move(name), kind, std::move(arguments), start - beginning, end - beginning,
                    0, this_thread});
}

}  // namespace lamella::profile

using namespace lamella;
using namespace lamella::profile;

extern "C" {

lamella_status lamella_profiler_start() noexcept {
  try {
    registered([] { register_layer_fallback(DispatchKey::PreDispatch, &run, __FILE__, __LINE__); });
    std::lock_guard lock(mutex);
    LAMELLA_CHECK(!is_running.load(), "profile: expected no other profile to be running");
    events.clear();
    beginning = now();
    lamella_thread.included |= kKey;
    keys_of_new_threads.fetch_or(kKey);
    is_running.store(true);
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

lamella_status lamella_profiler_stop(lamella_profile** profile) noexcept {
  try {
    auto made = std::make_unique<lamella_profile>();
    {
      std::lock_guard lock(mutex);
      LAMELLA_CHECK(is_running.load(), "profile: expected a profile to be running");
      is_running.store(false);
      keys_of_new_threads.fetch_and(~kKey);
      lamella_thread.included &= ~kKey;
      made->events = std::move(events);
      events = {};
    }
    // Events are recorded when they end; an enclosing event starts no later and ends no earlier.
    std::stable_sort(made->events.begin(), made->events.end(), [](const Event& a, const Event& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    find_own_times(made->events);
    *profile = made.release();
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

void lamella_profile_free(lamella_profile* profile) noexcept { delete profile; }

void lamella_profiler_enter(const char* name) noexcept {
  try {
    bool runs = is_running.load(std::memory_order_relaxed);
    if (!runs && ranges == nullptr) return;
    if (ranges == nullptr) ranges = new std::vector<Range>;
    ranges->push_back({name, runs ? now() : -1});
  } catch (...) {
    // Out of memory: the range is dropped.
  }
}

void lamella_profiler_leave() noexcept {
  if (ranges == nullptr) return;
  try {
    Range& last = ranges->back();
    if (last.start >= 0) add(std::move(last.name), "range", {}, last.start);
  } catch (...) {
    // Out of memory: the event of the range is dropped.
  }
  ranges->pop_back();
  if (ranges->empty()) delete std::exchange(ranges, nullptr);
}

void lamella_profile_each(const lamella_profile* profile,
                          void (*each)(void* context, const lamella_profile_event* event),
                          void* context) noexcept {
  for (const Event& event : profile->events) {
    lamella_profile_event one{event.name.c_str(),
                              event.kind,
                              event.arguments.c_str(),
                              event.start,
                              event.end - event.start,
                              event.own,
                              event.thread};
    each(context, &one);
  }
}

const char* lamella_profile_table(lamella_profile* profile, const char* sort_by,
                                  int64_t rows) noexcept {
  try {
    profile->table = table_of(profile->events, sort_by == nullptr ? "own" : sort_by, rows);
    return profile->table.c_str();
  } catch (...) {
    return "";
  }
}

const char* lamella_profile_trace(lamella_profile* profile) noexcept {
  try {
    profile->trace = trace_of(profile->events);
    return profile->trace.c_str();
  } catch (...) {
    return "";
  }
}

}  // extern "C"
