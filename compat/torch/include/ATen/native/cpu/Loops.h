// at::native::cpu_kernel, cpu_kernel_vec and similar functions: they run a function of numbers over
// the operands of a TensorIterator, with a function of vectors beside it where there is one.
#pragma once
#include <ATen/TensorIterator.h>
#include <ATen/cpu/vec/vec.h>

#include "lamella/dispatch/kernel_function.h"

namespace at::native {

namespace internal {
template <class F>
struct ElementFunction;
template <class R, class... A>
struct ElementFunction<R(A...)> {
  using Result = R;
  static constexpr int kInputs = sizeof...(A);
  static constexpr bool kSameTypes = (std::is_same_v<std::decay_t<A>, R> && ...);

  template <class T>
  static const T& read(char* const* data, const int64_t* strides, int arg, int64_t i) {
    return *reinterpret_cast<const T*>(data[arg] + strides[arg] * i);
  }
  // f of the elements i, whose operands begin at data[first].
  template <class F, size_t... K>
  static decltype(auto) at(F& f, char* const* data, const int64_t* strides, int first, int64_t i,
                           std::index_sequence<K...>) {
    return f(read<std::decay_t<A>>(data, strides, first + static_cast<int>(K), i)...);
  }
  template <class F>
  static decltype(auto) at(F& f, char* const* data, const int64_t* strides, int first, int64_t i) {
    return at(f, data, strides, first, i, std::index_sequence_for<A...>());
  }
  template <class F>
  static void run(F& f, char* const* data, const int64_t* strides, int64_t n) {
    if constexpr (std::is_void_v<R>) {
      for (int64_t i = 0; i < n; ++i) at(f, data, strides, 0, i);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        *reinterpret_cast<R*>(data[0] + strides[0] * i) = at(f, data, strides, 1, i);
      }
    }
  }
  // The same for contiguous elements, with strides that are compile-time constants.
  template <class F>
  static void run_dense(F& f, char* const* data, int64_t n) {
    if constexpr (std::is_void_v<R>) {
      constexpr int64_t strides[] = {sizeof(A)..., 0};
      run(f, data, strides, n);
    } else {
      constexpr int64_t strides[] = {sizeof(R), sizeof(std::decay_t<A>)...};
      run(f, data, strides, n);
    }
  }
  static bool is_dense(const int64_t* strides) {
    if constexpr (std::is_void_v<R>) {
      constexpr int64_t dense[] = {sizeof(std::decay_t<A>)..., 0};
      return __builtin_memcmp(strides, dense, kInputs * sizeof(int64_t)) == 0;
    } else {
      constexpr int64_t dense[] = {sizeof(R), sizeof(std::decay_t<A>)...};
      return __builtin_memcmp(strides, dense, sizeof(dense)) == 0;
    }
  }
  static void check_dtypes(const TensorIteratorBase& it) {
    int first = std::is_void_v<R> ? 0 : 1;
    auto fits = [&](int arg, size_t size) {
      LAMELLA_CHECK(arg < it.ntensors(), "cpu_kernel: expected ", first + kInputs,
                    " operands, got ", it.ntensors());
      LAMELLA_CHECK(it.element_size(arg) == static_cast<int64_t>(size),
                    "cpu_kernel: expected operand ", arg, " to have elements of ", size,
                    " bytes, as the function has, got ", it.dtype(arg));
    };
    if constexpr (!std::is_void_v<R>) fits(0, sizeof(R));
    (fits(first++, sizeof(std::decay_t<A>)), ...);
  }
};
template <class F>
using ElementFunctionOf =
    ElementFunction<typename lamella::detail::FunctionType<std::remove_cvref_t<F>>::type>;
}  // namespace internal

// f of numbers, for each place of the operands: its result goes to the output, its parameters are
// the inputs.
template <class F>
void cpu_kernel(TensorIteratorBase& it, F&& f, int64_t grain = 32768) {
  using Fn = internal::ElementFunctionOf<F>;
  Fn::check_dtypes(it);
  it.for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        if (Fn::is_dense(strides)) {
          Fn::run_dense(f, data, n);
        } else {
          Fn::run(f, data, strides, n);
        }
      },
      grain);
  it.cast_outputs();
}
// The same; where the operands are dense, or numbers among dense ones, f of vectors for whole ones.
template <bool = true, class F, class V>
void cpu_kernel_vec(TensorIteratorBase& it, F&& f, V&& vectors, int64_t grain = 32768) {
  using Fn = internal::ElementFunctionOf<F>;
  using Vec = typename internal::ElementFunctionOf<V>::Result;
  using T = typename Vec::value_type;
  static_assert(Fn::kSameTypes, "cpu_kernel_vec: expected a function of one type");
  Fn::check_dtypes(it);
  it.for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        bool dense = strides[0] == sizeof(T);
        for (int k = 1; k <= Fn::kInputs; ++k) {
          dense = dense && (strides[k] == sizeof(T) || strides[k] == 0);
        }
        int64_t i = 0;
        auto load = [&](int k) {
          const T* from = reinterpret_cast<const T*>(data[k]);
          return strides[k] == 0 ? Vec(*from) : Vec::loadu(from + i);
        };
        auto whole = [&]<size_t... K>(std::index_sequence<K...>) {
          return vectors(load(static_cast<int>(K) + 1)...);
        };
        for (; dense && i + Vec::size() <= n; i += Vec::size()) {
          whole(std::make_index_sequence<Fn::kInputs>()).store(reinterpret_cast<T*>(data[0]) + i);
        }
        char* rest[Fn::kInputs + 1];
        for (int k = 0; k <= Fn::kInputs; ++k) rest[k] = data[k] + i * strides[k];
        Fn::run(f, rest, strides, n - i);
      },
      grain);
  it.cast_outputs();
}
// A function that returns a tuple, an entry for each output.
template <class F>
void cpu_kernel_multiple_outputs(TensorIteratorBase& it, F&& f, int64_t grain = 32768) {
  using Fn = internal::ElementFunctionOf<F>;
  constexpr size_t kOutputs = std::tuple_size_v<typename Fn::Result>;
  it.for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          auto results = Fn::at(f, data, strides, static_cast<int>(kOutputs), i);
          [&]<size_t... K>(std::index_sequence<K...>) {
            ((*reinterpret_cast<std::tuple_element_t<K, typename Fn::Result>*>(
                  data[K] + strides[K] * i) = std::get<K>(results)),
             ...);
          }(std::make_index_sequence<kOutputs>());
        }
      },
      grain);
  it.cast_outputs();
}

// These run on the calling thread alone.
template <class F>
void cpu_serial_kernel(TensorIteratorBase& iter, F&& f) {
  cpu_kernel(iter, f, INT64_MAX);
}
template <class F, class V>
void cpu_serial_kernel_vec(TensorIteratorBase& iter, F&& f, V&& vectors) {
  cpu_kernel_vec(iter, f, vectors, INT64_MAX);
}

}  // namespace at::native
