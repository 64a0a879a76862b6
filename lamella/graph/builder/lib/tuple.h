// Trees of the shape of nested tuples (XLA's shape_tree.h and client/lib/tuple.h).
#pragma once
#include "lamella/graph/builder/functions.h"
#include "lamella/graph/builder/shape_util.h"

namespace lamella::hlo {

// A value for a shape and for each of its parts, by index.
template <class T>
class ShapeTree {
 public:
  ShapeTree() = default;
  explicit ShapeTree(Shape shape, const T& value = T()) : shape_(std::move(shape)) {
    ShapeUtil::ForEachSubshape(
        shape_, [&](const Shape&, const ShapeIndex& index) { values_.emplace(index, value); });
  }
  const Shape& shape() const { return shape_; }
  const T& element(const ShapeIndex& index) const { return values_.at(index); }
  T* mutable_element(const ShapeIndex& index) { return &values_.at(index); }
  template <class F>
  void ForEachElement(F&& visit) const {
    for (const auto& [index, value] : values_) visit(index, value);
  }
  template <class F>
  void ForEachMutableElement(F&& visit) {
    for (auto& [index, value] : values_) visit(index, &value);
  }

 private:
  Shape shape_;
  std::map<ShapeIndex, T> values_;  // parts follow the tuples that contain them
};

// The value and all of its parts.
inline StatusOr<ShapeTree<Op>> DisassembleTuple(Op tuple) {
  StatusOr<Shape> shape = tuple.builder()->GetShape(tuple);
  if (!shape.ok()) return shape.status();
  ShapeTree<Op> made(*shape);
  made.ForEachMutableElement([&](ShapeIndex index, Op* value) {
    if (index.empty()) {
      *value = tuple;
      return;
    }
    int64_t last = index.back();
    index.pop_back();
    *value = GetTupleElement(made.element(index), last);
  });
  return made;
}
// The value made of the tree's leaves.
inline Op AssembleTuple(Builder* builder, const ShapeTree<Op>& elements) {
  auto assemble = [&](auto& self, const Shape& shape, const ShapeIndex& index) -> Op {
    if (!shape.is_tuple()) return elements.element(index);
    std::vector<Op> parts;
    for (size_t n = 0; n < shape.tuple_shapes().size(); ++n) {
      ShapeIndex part = index;
      part.push_back(static_cast<int64_t>(n));
      parts.push_back(self(self, shape.tuple_shapes()[n], part));
    }
    return Tuple(builder, parts);
  };
  return assemble(assemble, elements.shape(), {});
}

}  // namespace lamella::hlo
