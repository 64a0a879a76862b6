// Call: one operator call that is being lowered to opcodes, and the table of rules.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "lamella/api/ops/item.h"
#include "lamella/api/tensor.h"
#include "lamella/core/fork.h"
#include "lamella/graph/builder/emission.h"
#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

Number number_of(const IValue& value) {
  switch (value.tag()) {
    case LAMELLA_INT:
      return value.value().as.i;
    case LAMELLA_BOOL:
      return value.value().as.i != 0;
    case LAMELLA_DOUBLE:
      return value.value().as.d;
    case LAMELLA_COMPLEX: {
      const auto* parts = static_cast<const double*>(value.value().as.pointer);
      return complex<double>(parts[0], parts[1]);
    }
    case LAMELLA_TENSOR:
      return number_of(IValue(Tensor(TensorBase::borrow(value.value().as.tensor)).item()));
    default:
      throw Error(str("lowering: expected a number, got ", value.tagKind()));
  }
}

ElementType element_of_number(const IValue& value) {
  if (value.isTensor()) {
    return element_type_of(TensorBase::borrow(value.value().as.tensor).scalar_type());
  }
  if (value.isBool()) return ElementType::PRED;
  if (value.isInt()) return ElementType::S64;
  return value.isComplexDouble() ? ElementType::C64 : ElementType::F32;
}

int category(ElementType type) {
  switch (element_kind(type)) {
    case ElementKind::Predicate:
      return 0;
    case ElementKind::Signed:
    case ElementKind::Unsigned:
      return 1;
    case ElementKind::Float:
      return 2;
    default:
      return 3;
  }
}

// The promoted type of operands. Tensors with dimensions determine it; zero-dimensional tensors and
// numbers (weak) count only if they have a higher category.
class Meeting {
 public:
  void add(ElementType type, bool weak) {
    ElementType& place = weak ? weak_ : strong_;
    place = place == ElementType::Invalid ? type : promoted(place, type);
  }
  ElementType type() const {
    if (strong_ == ElementType::Invalid) return weak_;
    if (weak_ == ElementType::Invalid || category(weak_) <= category(strong_)) return strong_;
    return category(weak_) == 3 && strong_ == ElementType::F64 ? ElementType::C128 : weak_;
  }

 private:
  static ElementType promoted(ElementType a, ElementType b) {
    return element_type_of(promote_types(*scalar_type_of(a), *scalar_type_of(b)));
  }
  ElementType strong_ = ElementType::Invalid;
  ElementType weak_ = ElementType::Invalid;
};

}  // namespace

Call::Call(Builder* builder, const FunctionSchema& schema, std::vector<Given> arguments,
           std::vector<Shape> results)
    : builder_(builder),
      schema_(schema),
      arguments_(std::move(arguments)),
      results_(std::move(results)),
      type_(results_.empty() ? ElementType::Invalid : results_[0].element_type()) {
  // Computes in float32 if there is a number, so that it is not rounded to a 16-bit type.
  bool with_number = std::ranges::any_of(arguments_, [](const Given& given) {
    return given.form == Given::Form::Plain && (given.value->isDouble() || given.value->isTensor());
  });
  if (type_ != ElementType::PRED) {
    if (with_number) widen();
    return;
  }
  Meeting tensors, zero_dim, numbers;
  for (const Given& given : arguments_) {
    if (given.form == Given::Form::Tensor && given.ops[0].valid()) {
      const Shape& one = shape(given.ops[0]);
      if (!scalar_type_of(one.element_type())) continue;
      (one.rank() == 0 ? zero_dim : tensors).add(one.element_type(), false);
    } else if (given.form == Given::Form::Plain &&
               (given.value->isScalar() || given.value->isTensor())) {
      numbers.add(element_of_number(*given.value), false);
    }
  }
  Meeting all;
  if (tensors.type() != ElementType::Invalid) all.add(tensors.type(), false);
  if (zero_dim.type() != ElementType::Invalid) {
    all.add(zero_dim.type(), tensors.type() != ElementType::Invalid);
  }
  ElementType met = all.type();
  Meeting last;
  if (met != ElementType::Invalid) last.add(met, false);
  if (numbers.type() != ElementType::Invalid) last.add(numbers.type(), met != ElementType::Invalid);
  type_ = last.type();
  if (with_number) widen();
}

const Given* Call::find(std::string_view name) const {
  for (size_t i = 0; i < schema_.arguments.size(); ++i) {
    if (schema_.arguments[i].name == name) return &arguments_[i];
  }
  return nullptr;
}
std::string_view Call::argument_name(size_t i) const { return schema_.arguments.at(i).name; }
ElementType Call::argument_type(size_t i) const {
  const Given& given = arguments_.at(i);
  return given.form == Given::Form::Tensor && given.ops[0].valid() ? type_of(given.ops[0])
                                                                   : ElementType::Invalid;
}
bool Call::has(std::string_view name) const {
  const Given* given = find(name);
  if (given == nullptr) return false;
  if (given->form == Given::Form::Plain) return !given->value->isNone();
  return given->form == Given::Form::Tensors || given->ops[0].valid();
}
bool Call::is_tensor(std::string_view name) const {
  const Given* given = find(name);
  return given != nullptr && given->form == Given::Form::Tensor && given->ops[0].valid();
}
Op Call::op(std::string_view name) const {
  const Given* given = find(name);
  LAMELLA_INTERNAL_ASSERT(given != nullptr, "lowering: expected an argument '", name, "' of ",
                          schema_.name.str());
  if (given->form == Given::Form::Plain) {
    return constant(element_of_number(*given->value), number_of(*given->value));
  }
  LAMELLA_INTERNAL_ASSERT(given->form == Given::Form::Tensor && given->ops[0].valid(),
                          "lowering: expected '", name, "' of ", schema_.name.str(),
                          " to be a tensor");
  return given->ops[0];
}
Ops Call::ops(std::string_view name) const {
  const Given* given = find(name);
  return given == nullptr ? Ops() : given->ops;
}
Number Call::number(std::string_view name, Number otherwise) const {
  return has(name) ? number_of(*find(name)->value) : otherwise;
}
double Call::real(std::string_view name, double otherwise) const {
  return number(name, otherwise).inexact.real();
}
int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  return has(name) ? find(name)->value->value().as.i : otherwise;
}
bool Call::flag(std::string_view name, bool otherwise) const {
  return integer(name, otherwise ? 1 : 0) != 0;
}
std::string_view Call::text(std::string_view name) const {
  if (!has(name)) return {};
  const lamella_value& value = find(name)->value->value();
  return {static_cast<const char*>(value.as.pointer), value.size};
}
Sizes Call::integers(std::string_view name) const {
  if (!has(name)) return {};
  const lamella_value& value = find(name)->value->value();
  if (value.tag == LAMELLA_INT) return {value.as.i};
  LAMELLA_CHECK(value.tag == LAMELLA_INT_LIST, "lowering: expected a list of integers");
  const auto* first = static_cast<const int64_t*>(value.as.pointer);
  return {first, first + value.size};
}
std::vector<bool> Call::flags(std::string_view name) const {
  if (!has(name)) return {};
  const lamella_value& value = find(name)->value->value();
  if (value.tag != LAMELLA_BOOL_LIST) return {};
  const auto* first = static_cast<const uint8_t*>(value.as.pointer);
  return std::vector<bool>(first, first + value.size);
}
int64_t Call::dimension(std::string_view name, int64_t rank, int64_t otherwise) const {
  int64_t d = integer(name, otherwise);
  return d < 0 ? d + std::max<int64_t>(rank, 1) : d;
}
Sizes Call::dimensions(std::string_view name, int64_t rank) const {
  Sizes dims = integers(name);
  if (dims.empty()) {
    dims.resize(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (int64_t& d : dims) d += d < 0 ? rank : 0;
  if (rank == 0) return {};
  std::sort(dims.begin(), dims.end());
  return dims;
}

Sizes Call::sizes(size_t i) const {
  std::span<const int64_t> all = result(i).dimensions();
  return {all.begin(), all.end()};
}
ElementType Call::wide(ElementType type) {
  return is_floating(type) && element_bits(type) == 16 ? ElementType::F32 : type;
}
Op Call::in(std::string_view name) const {
  const Given* given = find(name);
  LAMELLA_INTERNAL_ASSERT(given != nullptr, "lowering: expected an argument '", name, "' of ",
                          schema_.name.str());
  if (given->form == Given::Form::Plain) return fill(number_of(*given->value));
  return broadcast(convert(op(name), type_), sizes());
}
Op Call::fill(Number number) const { return full(type_, sizes(), number); }

Sizes Call::sizes_of(Op op) const {
  std::span<const int64_t> all = shape(op).dimensions();
  return {all.begin(), all.end()};
}
Op Call::convert(Op op, ElementType type) const {
  ElementType from = type_of(op);
  if (from == type) return op;
  if (is_complex(from) && type == ElementType::PRED) {
    return Or(convert(Real(op), type), convert(Imag(op), type));
  }
  if (is_complex(from) && !is_complex(type)) op = Real(op);
  return ConvertElementType(op, type);
}
Op Call::constant(ElementType type, Number number) const {
  return ConstantLiteral(builder_, scalar_literal(type, number));
}
Op Call::full(ElementType type, const Sizes& sizes, Number number) const {
  Op scalar = constant(type, number);
  return sizes.empty() ? scalar : Broadcast(scalar, sizes);
}
Op Call::broadcast(Op op, const Sizes& sizes) const {
  Sizes from = sizes_of(op);
  if (from == sizes) return op;
  LAMELLA_INTERNAL_ASSERT(from.size() <= sizes.size(), "lowering: expected sizes to broadcast in ",
                          schema_.name.str());
  Sizes dims(from.size());
  std::iota(dims.begin(), dims.end(), static_cast<int64_t>(sizes.size() - from.size()));
  return BroadcastInDim(op, sizes, dims);
}
Op Call::broadcast_back(Op op, const Sizes& dims, const Sizes& sizes) const {
  if (rank_of(op) == static_cast<int64_t>(sizes.size())) return broadcast(op, sizes);
  Sizes kept;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) kept.push_back(d);
  }
  return BroadcastInDim(op, sizes, kept);
}
Op Call::reshape(Op op, const Sizes& sizes) const {
  return sizes_of(op) == sizes ? op : Reshape(op, sizes);
}
Op Call::apply(Opcode opcode, std::initializer_list<Op> operands) const {
  return emit("lowering", Within(builder_), [&](Emission& e) { return e.add(opcode, operands); });
}
Op Call::sum(Op op, const Sizes& dims) const {
  ElementType type = type_of(op);
  return Reduce(op, Zero(builder_, type), CreateScalarAddComputation(type, builder_), dims);
}
Op Call::maximum(Op op, const Sizes& dims) const {
  ElementType type = type_of(op);
  return Reduce(op, MinValue(builder_, type), CreateScalarMaxComputation(type, builder_), dims);
}
Op Call::iota(ElementType type, const Sizes& sizes, int64_t dimension) const {
  return Iota(builder_, Shape::array(type, sizes), dimension);
}

// ---- The table ----------------------------------------------------------------------------------

namespace {

std::unordered_map<std::string_view, const Rule*> rules;
fork::Once rules_made;
const std::unordered_map<std::string_view, const Rule*>& table() {
  rules_made([] {
    for (std::span<const Rule> family :
         {unary_rules(), binary_rules(), activation_rules(), shape_rules(), strided_rules(),
          factory_rules(), reduction_rules(), contraction_rules(), normalization_rules(),
          loss_rules(), ordering_rules(), optimizer_rules()}) {
      for (const Rule& rule : family) rules.emplace(rule.name, &rule);
    }
  });
  return rules;
}

}  // namespace

const Rule* find_rule(std::string_view name) {
  name = name.substr(0, name.find('.'));
  auto found = table().find(name);
  if (found == table().end() && name.ends_with('_') && !name.ends_with("__")) {
    found = table().find(name.substr(0, name.size() - 1));
  }
  return found == table().end() ? nullptr : found->second;
}
Ops lower_word(Opcode opcode, Call& call) {
  int count = opcode_operands(opcode);
  if (opcode_family(opcode) != Family::Elementwise || count < 1 || count > 2) return {};
  if (is_complex(call.argument_type(0)) && !is_complex(call.type())) return {};
  Op x = call.in(call.argument_name(0));
  return {count == 1 ? call.apply(opcode, {x})
                     : call.apply(opcode, {x, call.in(call.argument_name(1))})};
}
std::vector<std::string_view> lowered_operators() {
  std::vector<std::string_view> names;
  for (const auto& [name, rule] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lamella::hlo::lowering
