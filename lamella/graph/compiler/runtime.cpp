// The functions that machine code calls: threads, matrix products, interrupts, and functions of
// vectors. They are part of liblamella_graph.so, so that cached code runs without the compiler.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/graph/compiler/vector_functions.h"
#include "lamella/graph/execute/machine_code.h"
#include "lamella/graph/execute/select_scatter.h"
#include "lamella/kernels/by_capability.h"

namespace lamella::hlo {
namespace {

thread_local std::exception_ptr pending;

// No function that machine code calls may throw: the error is kept until the code has returned.
template <class F>
int32_t keeping_errors(F&& work) {
  try {
    work();
    return 0;
  } catch (...) {
    pending = std::current_exception();
    return 1;
  }
}

// These functions return 1 if the code must return at once.
int32_t dot(const native::CodeProduct* p, const void* a, const void* b, void* c,
            lamella_storage* storage, const void* d) {
  return keeping_errors([&] { native::code_product(*p, a, b, c, storage, d); });
}

int32_t convolution(const native::CodeConvolution* p, void* src, void* weights, void* dst,
                    lamella_storage* storage, const void* bias) {
  return keeping_errors([&] { native::code_convolution(*p, src, weights, dst, storage, bias); });
}

int32_t attention(const native::CodeAttention* p, const native::CodeAttentionData* data) {
  return keeping_errors([&] { native::code_attention(*p, *data); });
}

int32_t scatter_selected(const SelectScatter* p, const void* operand, const void* source,
                         const void* first, void* result) {
  return keeping_errors(
      [&] { run_select_scatter(*p, operand, source, first, result, native::code_parallel); });
}

// `p` holds: bytes of an element, the rank, the sizes, the strides in `from`.
int32_t transpose(const int64_t* p, const void* from, void* to) {
  return keeping_errors([&] { native::code_copy(p[0], p[1], p + 2, p + 2 + p[1], from, to); });
}

int32_t interrupted(int64_t steps) {
  return keeping_errors([&] { count_steps(steps); });
}

// Stable sort of rows of `size` elements with stride `inner`. `data` holds the arrays of the
// operands, then those of the results.
struct SortProblem {
  int64_t operands, outer, size, inner;
  int64_t bytes[1];  // bytes of an element, for each operand
};
using Less = int32_t (*)(void* const* data, int64_t a, int64_t b);
// Merge sort that stays in bounds even if the comparator is inconsistent.
void sort_row(std::vector<int64_t>& order, std::vector<int64_t>& merged, void* const* data,
              Less less) {
  constexpr size_t kRun = 8;
  size_t size = order.size();
  for (size_t start = 0; start < size; start += kRun) {
    size_t end = std::min(start + kRun, size);
    for (size_t n = start + 1; n < end; ++n) {
      int64_t own = order[n];
      size_t at = n;
      for (; at > start && less(data, own, order[at - 1]) != 0; --at) order[at] = order[at - 1];
      order[at] = own;
    }
  }
  for (size_t run = kRun; run < size; run *= 2) {
    for (size_t start = 0; start < size; start += 2 * run) {
      size_t left = start, middle = std::min(start + run, size), right = middle;
      size_t end = std::min(start + 2 * run, size);
      for (size_t out = start; out < end; ++out) {
        bool take_right =
            left == middle || (right < end && less(data, order[right], order[left]) != 0);
        merged[out] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
    count_steps(static_cast<int64_t>(8 * size));
  }
}
template <class T>
int32_t sort_numbers(const SortProblem* p, void* const* data, int32_t descending) {
  return keeping_errors([&] {
    std::vector<T> row(static_cast<size_t>(p->size));
    const auto* from = static_cast<const T*>(data[0]);
    auto* to = static_cast<T*>(data[1]);
    for (int64_t r = 0; r < p->outer * p->inner; ++r) {
      int64_t first = r / p->inner * p->size * p->inner + r % p->inner;
      for (int64_t k = 0; k < p->size; ++k) {
        row[static_cast<size_t>(k)] = from[first + k * p->inner];
      }
      std::sort(row.begin(), row.end());
      if (descending != 0) std::reverse(row.begin(), row.end());
      for (int64_t k = 0; k < p->size; ++k) to[first + k * p->inner] = row[static_cast<size_t>(k)];
      count_steps(16 * p->size);
    }
  });
}
int32_t sort(const SortProblem* p, void* const* data, Less less) {
  return keeping_errors([&] {
    std::vector<int64_t> order(static_cast<size_t>(p->size)), merged(order.size());
    for (int64_t row = 0; row < p->outer * p->inner; ++row) {
      int64_t first = row / p->inner * p->size * p->inner + row % p->inner;
      for (int64_t k = 0; k < p->size; ++k) order[static_cast<size_t>(k)] = first + k * p->inner;
      sort_row(order, merged, data, less);
      for (int64_t n = 0; n < p->operands; ++n) {
        const auto* from = static_cast<const char*>(data[n]);
        auto* to = static_cast<char*>(data[p->operands + n]);
        auto bytes = static_cast<size_t>((&p->bytes[0])[n]);
        for (int64_t k = 0; k < p->size; ++k) {
          std::memcpy(to + static_cast<size_t>(first + k * p->inner) * bytes,
                      from + static_cast<size_t>(order[static_cast<size_t>(k)]) * bytes, bytes);
        }
      }
    }
    count_steps(p->outer * p->inner * p->size);
  });
}

// Conversions of halves, called by code for processors without such instructions.
#if defined(__x86_64__)
_Float16 half_of(float x) { return static_cast<_Float16>(x); }
_Float16 half_of_double(double x) { return static_cast<_Float16>(x); }
float float_of(_Float16 x) { return static_cast<float>(x); }
#endif

struct Symbol {
  const char* name;
  const void* address;
};
template <class F>
const void* address(F* function) {
  return reinterpret_cast<const void*>(function);
}
using OfFloat = float (*)(float);
using OfDouble = double (*)(double);
// Object files made ahead of time call these functions, too: change a signature only together with
// the library's version, which the loader compares.
const Symbol kSymbols[] = {
    {"lamella_parallel", address(native::code_parallel)},
    {"lamella_dot", address(dot)},
    {"lamella_convolution", address(convolution)},
    {"lamella_attention", address(attention)},
    {"lamella_select_scatter", address(scatter_selected)},
    {"lamella_transpose", address(transpose)},
    {"lamella_sort", address(sort)},
    {"lamella_sort_s8", address(sort_numbers<int8_t>)},
    {"lamella_sort_s16", address(sort_numbers<int16_t>)},
    {"lamella_sort_s32", address(sort_numbers<int32_t>)},
    {"lamella_sort_s64", address(sort_numbers<int64_t>)},
    {"lamella_sort_u8", address(sort_numbers<uint8_t>)},
    {"lamella_sort_u16", address(sort_numbers<uint16_t>)},
    {"lamella_sort_u32", address(sort_numbers<uint32_t>)},
    {"lamella_sort_u64", address(sort_numbers<uint64_t>)},
    {"lamella_interrupted", address(interrupted)},
    {"lamella_cbrt", address(static_cast<OfDouble>(std::cbrt))},
    {"memcpy", address(static_cast<void* (*)(void*, const void*, size_t)>(std::memcpy))},
    {"memset", address(static_cast<void* (*)(void*, int, size_t)>(std::memset))},
    {"memmove", address(static_cast<void* (*)(void*, const void*, size_t)>(std::memmove))},
    {"floorf", address(static_cast<OfFloat>(::floorf))},
    {"ceilf", address(static_cast<OfFloat>(::ceilf))},
    {"roundf", address(static_cast<OfFloat>(::roundf))},
    {"roundevenf", address(static_cast<OfFloat>(::rintf))},
    {"floor", address(static_cast<OfDouble>(::floor))},
    {"ceil", address(static_cast<OfDouble>(::ceil))},
    {"round", address(static_cast<OfDouble>(::round))},
    {"roundeven", address(static_cast<OfDouble>(::rint))},
#if defined(__x86_64__)
    {"__truncsfhf2", address(&half_of)},
    {"__truncdfhf2", address(&half_of_double)},
    {"__extendhfsf2", address(&float_of)},
#endif
};

}  // namespace

void throw_pending() { std::rethrow_exception(std::exchange(pending, nullptr)); }

uint32_t code_capability() { return static_cast<uint32_t>(native::code_capability()); }

const void* code_symbol(std::string_view name, uint32_t capability) {
  for (const Symbol& one : kSymbols) {
    if (one.name == name) return one.address;
  }
  for (const compiler::VectorFunction& one : compiler::vector_functions(capability).all) {
    if (name == str("lamella_", one.name, "_float")) return one.f32;
    if (name == str("lamella_", one.name, "_double")) return one.f64;
  }
  return nullptr;
}

const compiler::VectorFunctions& compiler::vector_functions(uint32_t capability) {
  // A build for one machine has only the capability that this machine uses.
  static const VectorFunctions all[] = {LAMELLA_IF_DEFAULT(DEFAULT::vector_functions(), )
                                            LAMELLA_IF_AVX2(AVX2::vector_functions(), )
                                                LAMELLA_IF_AVX512(AVX512::vector_functions(), )};
  return all[std::min<size_t>(capability, std::size(all) - 1)];
}

}  // namespace lamella::hlo
