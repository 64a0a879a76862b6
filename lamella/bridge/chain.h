// Chains of transforms of an operator: Note [Chains] in python/lamella/bridge/_transform.py.
#pragma once
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lamella/bridge/bridge.h"

namespace lamella::bridge {

// One reference to a tensor, or none.
class OwnedTensor {
 public:
  OwnedTensor() = default;
  explicit OwnedTensor(lamella_tensor* owned) : t_(owned) {}
  OwnedTensor(OwnedTensor&& other) noexcept : t_(other.take()) {}
  OwnedTensor& operator=(OwnedTensor&& other) noexcept {
    std::swap(t_, other.t_);
    return *this;
  }
  ~OwnedTensor() { release(t_); }
  static OwnedTensor borrow(lamella_tensor* t) {
    if (t != nullptr) retain(t);
    return OwnedTensor(t);
  }
  lamella_tensor* get() const { return t_; }
  lamella_tensor* take() { return std::exchange(t_, nullptr); }

 private:
  lamella_tensor* t_ = nullptr;
};
using Tensors = std::vector<OwnedTensor>;
using TensorSpan = std::span<lamella_tensor* const>;

using Json = nlohmann::json;
Json parse(std::string_view text);
int64_t whole(const Json& number);  // or 0, 1 of a bool

// Values of arguments that are no tensors, with what they point to.
class Constants {
 public:
  // The value of an argument by its text.
  lamella_value read(const Argument& argument, const Json& json);
  lamella_value string(std::string_view text);
  lamella_value complex(double real, double imaginary);

 private:
  std::deque<std::string> texts_;
  std::deque<std::vector<uint64_t>> words_;
  std::deque<std::vector<lamella_value>> lists_;
};
// The number of a dtype, device, layout or memory format by its name, which may have that of a
// module in front.
lamella_value named_value(const Argument& argument, std::string_view name);

class Chain {
 public:
  explicit Chain(std::string_view text);  // as bridge/_transform.py writes it

  const lamella_operator* op = nullptr;
  std::vector<Argument> arguments, returns;
  // For each argument that is a tensor or a list of them, their numbers (-1: absent).
  struct Place {
    std::vector<int32_t> numbers;
    bool is_list = false;
  };
  std::vector<std::optional<Place>> places;
  std::vector<lamella_value> values;  // of the others
  struct Transform {
    enum class Kind : uint8_t { kVjp, kJvp, kVmap };
    Kind kind;
    std::vector<int32_t> ins, outs;  // kVmap: `ins` says which inputs have a batch
  };
  std::vector<Transform> transforms;

  // The results of the transforms, or of the operator with its lists opened.
  Tensors run(TensorSpan xs) const { return run(transforms.size(), xs); }
  // Calls the operator; results has room for its returns.
  void call(TensorSpan xs, Results& results) const;

 private:
  Constants constants_;
  Tensors run(size_t depth, TensorSpan xs) const;
  Tensors run_operator(TensorSpan xs) const;
  Tensors vjp(size_t depth, TensorSpan xs) const;
  bool vjp_by_saved(const Transform& t, TensorSpan xs, Tensors* made) const;
  Tensors jvp(size_t depth, TensorSpan xs) const;
  Tensors jvp_by_vjps(size_t depth, TensorSpan xs) const;
  Tensors vmap(size_t depth, TensorSpan xs) const;
  // The chosen outputs of an inner chain, at aliases of the inputs that require gradients.
  struct Recorded {
    Tensors inputs, results;
    std::vector<lamella_tensor*> outputs;  // of the results
  };
  Recorded record(size_t depth, TensorSpan primals) const;
  lamella_tensor* output(const Tensors& results, int32_t number) const;
  // The operator's arguments: the lists of tensors live in `lists`.
  void fill(TensorSpan xs, lamella_value* to,
            std::deque<std::vector<lamella_tensor*>>& lists) const;
};

}  // namespace lamella::bridge
