// ProgramShape: the shapes of a computation's parameters and result.
#pragma once
#include <string>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

class ProgramShape {
 public:
  ProgramShape() = default;
  explicit ProgramShape(const Computation& computation);

  int parameters_size() const { return static_cast<int>(parameters_.size()); }
  const Shape& parameters(int i) const { return parameters_.at(static_cast<size_t>(i)); }
  const std::vector<Shape>& parameters() const { return parameters_; }
  const std::string& parameter_names(int i) const { return names_.at(static_cast<size_t>(i)); }
  const std::vector<std::string>& parameter_names() const { return names_; }
  const Shape& result() const { return result_; }
  void AddParameter(const Shape& shape, std::string_view name) {
    parameters_.push_back(shape);
    names_.emplace_back(name);
  }
  Shape* mutable_result() { return &result_; }
  // "(p0: f32[2], p1: s32[]) -> f32[2]".
  std::string ToString() const;

 private:
  std::vector<Shape> parameters_;
  std::vector<std::string> names_;
  Shape result_;
};

}  // namespace lamella::hlo
