// Adding instructions, computations and shapes to modules.
#include "lamella/graph/hlo/module.h"

#include <algorithm>

#include "lamella/core/error.h"

namespace lamella::hlo {
namespace {

size_t hash_of_shape(const Shape& shape) {
  size_t hash = static_cast<size_t>(shape.element_type()) * 0x9e3779b97f4a7c15ull;
  for (int64_t size : shape.dimensions()) {
    hash = (hash ^ static_cast<size_t>(size)) * 0x100000001b3ull;
  }
  for (int64_t d : shape.minor_to_major()) {
    hash = (hash ^ static_cast<size_t>(d + 7)) * 0x100000001b3ull;
  }
  for (const Shape& element : shape.tuple_shapes()) hash = hash * 31 + hash_of_shape(element);
  return hash ^ (hash >> 29);
}

}  // namespace

const Shape* Module::intern(Shape shape) {
  if (shape_count_ * 2 >= shapes_.size()) {
    std::vector<std::vector<const Shape*>> wider(std::max<size_t>(64, shapes_.size() * 4));
    for (auto& bucket : shapes_) {
      for (const Shape* one : bucket) wider[hash_of_shape(*one) % wider.size()].push_back(one);
    }
    shapes_ = std::move(wider);
  }
  auto& bucket = shapes_[hash_of_shape(shape) % shapes_.size()];
  for (const Shape* one : bucket) {
    if (*one == shape) return one;
  }
  ++shape_count_;
  bucket.push_back(arena_.make<Shape>(std::move(shape)));
  return bucket.back();
}

Computation* Module::add_computation(std::string_view name) {
  owned_computations_.push_back(std::make_unique<Computation>());
  Computation* made = owned_computations_.back().get();
  made->name = arena_.copy(name);
  made->parent = this;
  computations.push_back(made);
  computation_names_.emplace(made->name, 0);
  return made;
}

Instruction* Module::add_instruction(Computation* computation, Opcode opcode, std::string_view name,
                                     const Shape* shape, std::span<Instruction* const> operands,
                                     std::span<const Attribute> attributes) {
  auto* made = arena_.make<Instruction>();
  made->opcode = opcode;
  made->name = arena_.copy(name);
  made->shape = shape;
  made->operands = arena_.copy(operands);
  made->attributes = arena_.copy(attributes);
  made->parent = computation;
  made->index = static_cast<int64_t>(computation->instructions.size());
  computation->instructions.push_back(made);
  return made;
}

Computation* Module::find_computation(std::string_view wanted) const {
  for (Computation* one : computations) {
    if (one->name == wanted) return one;
  }
  return nullptr;
}
std::string Module::free_computation_name(std::string_view wanted) {
  auto found = computation_names_.find(wanted);
  std::string name(wanted);
  if (found == computation_names_.end()) return name;
  do {
    name = str(wanted, ".", ++found->second);
  } while (computation_names_.contains(name));
  return name;
}
int64_t Module::instruction_count() const {
  int64_t count = 0;
  for (const Computation* one : computations) {
    count += static_cast<int64_t>(one->instructions.size());
  }
  return count;
}

std::string Computation::signature() const {
  std::string text = "(";
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i != 0) text += ", ";
    text += str(parameters[i]->name, ": ", parameters[i]->shape->to_string());
  }
  return text += str(") -> ", root->shape->to_string());
}

}  // namespace lamella::hlo
