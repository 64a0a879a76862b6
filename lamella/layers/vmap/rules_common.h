// Helpers that the families of batching rules share: typed rules, decompositions, and calls with
// changed arguments. Internal.
//
// Note [Three ways to write a rule]
//   A rule for a named `batching:` policy is one of
//     typed<f>        f(BatchedCall&, arguments...) takes the operator's arguments, with an In for
//                     each tensor. It returns values with the batch in front.
//     decomposed<f>   f(arguments...) has the operator's own C++ signature. It gets the batched
//                     tensors themselves and calls other operators on them.
//     a function of BatchedCall that serves many operators: it selects arguments by their names.
//   The first two serve in-place and out variants too: their result is copied into the written
//   argument. f may omit trailing arguments, such as `out`.
#pragma once
#include <array>
#include <string_view>
#include <tuple>
#include <vector>

#include "lamella/api/derivative_calls.h"
#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {

using Sizes = std::vector<int64_t>;

// ---- Tensor arguments ------------------------------------------------------------------------

// A tensor argument: if `batched`, dimension 0 of the value is the batch.
struct In {
  Tensor value;
  bool batched = false;

  bool defined() const { return value.defined(); }
  // The rank and the sizes that one example sees.
  int64_t rank() const { return value.dim() - (batched ? 1 : 0); }
  IntArrayRef sizes() const { return value.sizes().slice(batched ? 1 : 0); }
  int64_t size(int64_t dim) const;  // counts from the end if negative
  int64_t numel() const;
};

inline In input(const BatchedCall& call, uint32_t index) {
  return {call.tensor(index), call.is_batched(index)};
}
std::vector<In> inputs(const BatchedCall& call, uint32_t index);  // of a list
// The value with the batch in front, expanded if it has none.
Tensor front(const BatchedCall& call, const In& x);
// The same, with an example's sizes padded with ones in front up to `rank`.
Tensor front(const BatchedCall& call, const In& x, int64_t rank);
// Pads the sizes of one example with ones in front up to `rank`, so that the batch broadcasts
// correctly; a tensor that is not batched is returned unchanged.
Tensor aligned(const In& x, int64_t rank);
// Throws unless each example of the first argument has at least two dimensions: in front of a
// vector, the batch would be taken for the rows of a matrix.
void need_matrices(const BatchedCall& call);
// {batch, sizes...}
Sizes with_batch(const BatchedCall& call, IntArrayRef sizes);

// Elements from the first to the last of a tensor of this shape, gaps included.
int64_t memory_extent(IntArrayRef size, IntArrayRef stride);

inline std::optional<Tensor> or_none(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}

// ---- Results ---------------------------------------------------------------------------------

// Sets return `number` of the call to a value with the batch in front. If the return is a written
// argument, the value is copied into it.
void give_value(BatchedCall& call, uint32_t number, const Tensor& value);
void give_value(BatchedCall& call, uint32_t number, const std::vector<Tensor>& values);
// The same for a batched tensor, as decompositions compute them.
void give_result(BatchedCall& call, uint32_t number, const Tensor& result);
void give_result(BatchedCall& call, uint32_t number, const std::vector<Tensor>& results);

// Makes the batched tensor of argument `i`, which is also the call's return 0, wrap `value`.
void become(BatchedCall& call, uint32_t i, TensorBase value);

// ---- Rules from C++ functions ----------------------------------------------------------------

namespace detail {

template <class T>
T original(const BatchedCall& call, uint32_t i) {
  const lamella_value& value = call.original(i);
  if constexpr (std::is_same_v<T, Tensor>) {
    return lamella::detail::tensor_in(value);
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    return or_none(lamella::detail::tensor_in(value));
  } else if constexpr (abi::is_optional<T>::value) {
    if (value.tag == LAMELLA_NONE) return std::nullopt;
    return lamella::detail::value_in<typename T::value_type>(value);
  } else {
    return lamella::detail::value_in<T>(value);
  }
}
template <class T>
T argument(const BatchedCall& call, uint32_t i) {
  if constexpr (std::is_same_v<T, In>) {
    return input(call, i);
  } else if constexpr (std::is_same_v<T, std::vector<In>>) {
    return inputs(call, i);
  } else {
    return original<T>(call, i);
  }
}

template <class F>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(BatchedCall&, A...)> {
  using Result = R;
  template <auto f>
  static R run(BatchedCall& call) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return f(call, argument<std::decay_t<A>>(call, static_cast<uint32_t>(i))...);
    }(std::index_sequence_for<A...>());
  }
};
template <class F>
struct PlainSignature;
template <class R, class... A>
struct PlainSignature<R (*)(A...)> {
  using Result = R;
  template <auto f>
  static R run(BatchedCall& call) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return f(original<std::decay_t<A>>(call, static_cast<uint32_t>(i))...);
    }(std::index_sequence_for<A...>());
  }
};

// Calls give(number, value) for a single result, or for each element of a tuple.
template <class R, class Give>
void each_result(const R& result, Give give) {
  if constexpr (requires { std::tuple_size<R>::value; }) {
    [&]<size_t... i>(std::index_sequence<i...>) {
      (give(static_cast<uint32_t>(i), std::get<i>(result)), ...);
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else {
    give(0, result);
  }
}

}  // namespace detail

template <auto f>
void typed(BatchedCall& call) {
  using Run = detail::Signature<decltype(f)>;
  detail::each_result(Run::template run<f>(call),
                      [&](uint32_t number, const auto& value) { give_value(call, number, value); });
}

template <auto f>
void decomposed(BatchedCall& call) {
  using Run = detail::PlainSignature<decltype(f)>;
  if constexpr (std::is_void_v<typename Run::Result>) {
    Run::template run<f>(call);
  } else {
    detail::each_result(Run::template run<f>(call), [&](uint32_t number, const auto& result) {
      give_result(call, number, result);
    });
  }
}

// ---- The tables ------------------------------------------------------------------------------

struct NamedRule {
  std::string_view name;  // as `batching:` says it
  Rule rule;
};
using NamedRules = ArrayRef<NamedRule>;

NamedRules shape_rules();
NamedRules factory_rules();
NamedRules matmul_rules();
NamedRules linalg_rules();
NamedRules index_rules();
NamedRules nn_rules();
NamedRules norm_rules();
NamedRules loss_rules();
NamedRules misc_rules();

}  // namespace lamella::vmap
