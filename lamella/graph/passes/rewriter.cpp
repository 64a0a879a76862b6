// Rewriter: replaces instructions, and makes new instructions and attributes.
#include "lamella/graph/passes/rewriter.h"

#include <algorithm>
#include <string>

#include "lamella/core/error.h"

namespace lamella::hlo {

Rewriter::Rewriter(Module& module, Computation& computation)
    : module_(module), computation_(computation), uses_(computation.instructions.size()) {
  auto use = [&](const Instruction* i) { ++uses_[static_cast<size_t>(i->index)]; };
  use(computation.root);
  for (const Instruction* i : computation.instructions) {
    reads_layouts_ = reads_layouts_ || i->opcode == Opcode::Bitcast;
    for (const Instruction* operand : i->operands) use(operand);
    if (const Attribute* before = i->find(AttributeKey::ControlPredecessors)) {
      fixed_.insert(i);
      for (const Instruction* one : before->instructions()) fixed_.insert(one);
    }
  }
}

void Rewriter::take_operands(Instruction& i) {
  for (Instruction*& operand : i.operands) {
    auto found = replaced_.find(operand);
    if (found != replaced_.end()) operand = found->second;
  }
}

// Elements are in row-major order whatever a layout says, but bitcasts and the layout of the result
// depend on the stated layout.
bool Rewriter::may_stand_for(const Instruction& by, const Instruction& i) const {
  LAMELLA_INTERNAL_ASSERT(by.shape->compatible(*i.shape), "passes: expected ",
                          i.shape->to_string(false), " for ", i.name, ", got ",
                          by.shape->to_string(false));
  return by.shape == i.shape || (!reads_layouts_ && computation_.root != &i);
}

Instruction* Rewriter::add(Opcode opcode, Shape shape, const std::vector<Instruction*>& operands,
                           const std::vector<Attribute>& attributes) {
  if (names_.empty()) {
    for (const Instruction* i : before_) names_.insert(i->name);
    for (const Instruction* i : computation_.instructions) names_.insert(i->name);
  }
  std::string name;
  size_t n = computation_.instructions.size();
  do {
    name = str(current_->name, ".", opcode_name(opcode), ".", n++);
  } while (names_.count(name) != 0);
  const Shape* kept = shape.compatible(*current_->shape) ? current_->shape : nullptr;
  if (kept == nullptr) kept = module_.intern(std::move(shape));
  Instruction* made =
      module_.add_instruction(&computation_, opcode, name, kept, operands, attributes);
  names_.insert(made->name);
  return made;
}

Instruction* Rewriter::with_operands(const Instruction* i,
                                     const std::vector<Instruction*>& operands) {
  return add(i->opcode, *i->shape, operands,
             std::vector<Attribute>(i->attributes.begin(), i->attributes.end()));
}

Instruction* Rewriter::constant(Literal literal) {
  Instruction* made = add(Opcode::Constant, literal.shape(), {});
  made->literal = module_.arena().make<Literal>(std::move(literal));
  return made;
}

Instruction* Rewriter::full(const Shape& shape, double value) {
  Instruction* one = constant(Literal::scalar(shape.element_type(), value));
  return shape.rank() == 0 ? one : broadcast(one, shape, {});
}
Instruction* Rewriter::reshape(Instruction* x, const std::vector<int64_t>& sizes) {
  if (std::ranges::equal(x->shape->dimensions(), sizes)) return x;
  return add(Opcode::Reshape, Shape::array(x->shape->element_type(), sizes), {x});
}
Instruction* Rewriter::transpose(Instruction* x, const std::vector<int64_t>& order) {
  if (std::ranges::is_sorted(order)) return x;
  std::vector<int64_t> sizes;
  for (int64_t d : order) sizes.push_back(x->shape->dimension(d));
  return add(Opcode::Transpose, Shape::array(x->shape->element_type(), sizes), {x},
             {integers(AttributeKey::Dimensions, order)});
}
Instruction* Rewriter::broadcast(Instruction* x, const Shape& shape,
                                 const std::vector<int64_t>& dims) {
  std::vector<int64_t> sizes(shape.dimensions().begin(), shape.dimensions().end());
  return add(Opcode::Broadcast, Shape::array(x->shape->element_type(), sizes), {x},
             {integers(AttributeKey::Dimensions, dims)});
}

Attribute Rewriter::integers(AttributeKey key, const std::vector<int64_t>& numbers) {
  Attribute made{};
  made.key = key;
  std::span<int64_t> kept = module_.arena().copy(std::span<const int64_t>(numbers));
  made.size = static_cast<uint32_t>(kept.size());
  made.integer_data = kept.data();
  return made;
}
Attribute Rewriter::integer(AttributeKey key, int64_t number) {
  Attribute made{};
  made.key = key;
  made.integer = number;
  return made;
}
Attribute Rewriter::text(AttributeKey key, std::string_view text) {
  Attribute made{};
  made.key = key;
  std::string_view kept = module_.arena().copy(text);
  made.size = static_cast<uint32_t>(kept.size());
  made.text_data = kept.data();
  return made;
}

Attribute Rewriter::window(const std::vector<WindowDimension>& dimensions) {
  Attribute made{};
  made.key = AttributeKey::Window;
  std::span<WindowDimension> kept =
      module_.arena().copy(std::span<const WindowDimension>(dimensions));
  made.size = static_cast<uint32_t>(kept.size());
  made.window_data = kept.data();
  return made;
}
Attribute Rewriter::dim_labels(ConvolutionDimensions dimensions) {
  Attribute made{};
  made.key = AttributeKey::DimLabels;
  made.convolution = module_.arena().make<ConvolutionDimensions>(std::move(dimensions));
  return made;
}

const Literal* repeated_constant(const Instruction* i) {
  while (i->opcode == Opcode::Broadcast || i->opcode == Opcode::Reshape ||
         i->opcode == Opcode::Copy || i->opcode == Opcode::Transpose) {
    i = i->operands[0];
  }
  bool one = i->opcode == Opcode::Constant && i->shape->is_array() && i->shape->elements() == 1;
  return one ? i->literal : nullptr;
}
std::vector<int64_t> without_ones(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (int64_t size : shape.dimensions()) {
    if (size != 1) sizes.push_back(size);
  }
  return sizes;
}
bool moves_ones(const Instruction& reshape) {
  return reshape.opcode == Opcode::Reshape &&
         without_ones(*reshape.shape) == without_ones(reshape.operand_shape(0));
}

}  // namespace lamella::hlo
