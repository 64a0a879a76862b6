// at::parallel_for and similar functions, on Lamella's thread pool.
#pragma once
#include <ATen/Config.h>
#include <c10/lamella_names.h>

#include "lamella/parallel.h"

namespace at {
using lamella::parallel_for;
using lamella::parallel_reduce;
inline int get_num_threads() { return lamella_thread_count(); }
inline void set_num_threads(int threads) {
  lamella::detail::check(lamella_set_thread_count(threads));
}
inline bool in_parallel_region() { return lamella_in_parallel_loop() != 0; }
inline int get_thread_num() { return lamella_thread_number(); }
// There is no second pool for tasks between operators: the task has run when this returns.
template <class F>
void launch(F&& task) {
  task();
}
template <class F>
void intraop_launch(F&& task) {
  task();
}
inline int get_num_interop_threads() { return 1; }
inline void set_num_interop_threads(int) {}
inline void init_num_threads() {}
inline void lazy_init_num_threads() {}
namespace internal {
inline constexpr int64_t GRAIN_SIZE = 32768;
}
constexpr int64_t divup(int64_t x, int64_t y) { return (x + y - 1) / y; }
}  // namespace at
