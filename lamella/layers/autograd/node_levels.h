// Nodes of user-defined functions that were called on batched tensors. Internal to Lamella.
//
// Note [Nodes under vmap]
//   The graph connects the tensors behind all levels. A user-defined function that was called on
//   batched tensors expects batched gradients in its backward. So the outputs' gradients are
//   batched like the outputs were, under the same levels, before its backward is called, and its
//   results are unwrapped. If an input was not batched at a level of the outputs, the gradients of
//   all examples are added.
#pragma once
#include <algorithm>

#include "lamella/core/wrapper.h"

namespace lamella::autograd {

class NodeLevels {
 public:
  bool any() const { return !all_.empty(); }
  // In the order of the node's inputs and outputs; NULL: no tensor.
  void add_input(const lamella_tensor* t) { add(inputs_, t); }
  void add_output(const lamella_tensor* t) {
    add(outputs_, t);
    for (const auto& level : outputs_.back()) insert(of_outputs_, level);
  }
  const BatchLevels& all() const { return all_; }

  // A gradient of the tensor behind output i, batched as the output was.
  TensorBase hide_output(const TensorBase& grad, uint32_t i) const {
    const BatchLevels* levels = i < outputs_.size() ? &outputs_[i] : nullptr;
    return levels == nullptr || levels->empty() || !grad.defined()
               ? grad
               : batching_hooks().hide(grad, *levels);
  }
  // Converts the gradient that the function returned for input i to that of the tensor behind it.
  TensorBase expose_input(const TensorBase& grad, uint32_t i) const {
    BatchLevels added;
    for (const auto& level : of_outputs_) {
      if (!has(inputs_[i], level)) added.push_back(level);
    }
    TensorBase result = added.empty() ? grad : batching_hooks().sum(grad, added);
    return inputs_[i].empty() ? result : batching_hooks().expose(result, inputs_[i]);
  }

 private:
  static bool has(const BatchLevels& levels, const std::pair<uint32_t, int64_t>& level) {
    return std::find(levels.begin(), levels.end(), level) != levels.end();
  }
  // Highest first.
  static void insert(BatchLevels& levels, const std::pair<uint32_t, int64_t>& level) {
    if (has(levels, level)) return;
    levels.insert(std::upper_bound(levels.begin(), levels.end(), level, std::greater<>()), level);
  }
  void add(std::vector<BatchLevels>& to, const lamella_tensor* t) {
    to.push_back(t != nullptr ? levels_of(t) : BatchLevels());
    for (const auto& level : to.back()) insert(all_, level);
  }

  std::vector<BatchLevels> inputs_, outputs_;
  BatchLevels all_, of_outputs_;
};

}  // namespace lamella::autograd
