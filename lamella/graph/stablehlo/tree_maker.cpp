// Making the values, types and attributes of a tree.
#include "lamella/graph/stablehlo/tree_maker.h"

namespace lamella::hlo::stablehlo {

using Kind = Attribute::Kind;

const Type* TreeMaker::tensor(ElementType element, std::vector<int64_t> sizes) {
  auto* made = arena_.make<Type>();
  made->kind = Type::Kind::Tensor;
  made->element = element;
  made->sizes = std::move(sizes);
  return made;
}
const Type* TreeMaker::type(const Shape& shape) {
  if (shape.is_array()) {
    auto* made = const_cast<Type*>(
        tensor(shape.element_type(), {shape.dimensions().begin(), shape.dimensions().end()}));
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (!shape.is_dynamic(d) && !shape.is_unbounded(d)) continue;
      const auto at = static_cast<size_t>(d);
      if (!shape.is_unbounded(d)) {
        made->bounds.resize(made->sizes.size(), kUnknownSize);
        made->bounds[at] = made->sizes[at];
      }
      made->sizes[at] = kUnknownSize;
    }
    return made;
  }
  auto* made = arena_.make<Type>();
  made->kind = shape.is_token() ? Type::Kind::Token : Type::Kind::Tuple;
  if (!shape.is_token() && !shape.is_tuple()) {
    throw Error(
        str("to_stablehlo: expected arrays, tuples and tokens, got ", shape.to_string(false)));
  }
  for (const Shape& part : shape.tuple_shapes()) made->parts.push_back(type(part));
  return made;
}
Value* TreeMaker::value(const Type* type) {
  auto* made = arena_.make<Value>();
  made->type = type;
  return made;
}

Attribute* TreeMaker::made(Kind kind) {
  auto* one = arena_.make<Attribute>();
  one->kind = kind;
  return one;
}
const Attribute* TreeMaker::text_of(Kind kind, std::string_view text) {
  Attribute* one = made(kind);
  one->text = arena_.copy(text);
  return one;
}
const Attribute* TreeMaker::boolean(bool value) {
  Attribute* one = made(Kind::Boolean);
  one->integer = value ? 1 : 0;
  return one;
}
const Attribute* TreeMaker::integer(int64_t value, ElementType element) {
  auto* type = arena_.make<Type>();
  type->kind = Type::Kind::Element;
  type->element = element;
  Attribute* one = made(Kind::Integer);
  one->integer = value;
  one->type = type;
  return one;
}
const Attribute* TreeMaker::real(double value) {
  auto* type = arena_.make<Type>();
  type->kind = Type::Kind::Element;
  type->element = ElementType::F32;
  Attribute* one = made(Kind::Real);
  one->real = value;
  one->type = type;
  return one;
}
const Attribute* TreeMaker::list(std::vector<const Attribute*> parts) {
  Attribute* one = made(Kind::List);
  one->list = std::move(parts);
  return one;
}
const Attribute* TreeMaker::dictionary(std::vector<Named> entries) {
  Attribute* one = made(Kind::Dictionary);
  one->entries = std::move(entries);
  return one;
}
const Attribute* TreeMaker::type_of(const Type* type) {
  Attribute* one = made(Kind::TypeOf);
  one->type = type;
  return one;
}
const Attribute* TreeMaker::integers(std::span<const int64_t> numbers) {
  Attribute* one = made(Kind::Elements);
  one->type = tensor(ElementType::S64, {static_cast<int64_t>(numbers.size())});
  one->text = arena_.copy(
      std::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()));
  return one;
}
const Attribute* TreeMaker::matrix(std::span<const int64_t> numbers, int64_t rows,
                                   int64_t columns) {
  auto* one = const_cast<Attribute*>(integers(numbers));
  one->type = tensor(ElementType::S64, {rows, columns});
  return one;
}
const Attribute* TreeMaker::layout(std::span<const int64_t> order) {
  auto* one = const_cast<Attribute*>(integers(order));
  auto* type = arena_.make<Type>(*one->type);
  type->name = "index";
  one->type = type;
  return one;
}
const Attribute* TreeMaker::booleans(const std::vector<bool>& values) {
  std::string bytes;
  for (bool value : values) bytes += value ? '\1' : '\0';
  Attribute* one = made(Kind::Elements);
  one->type = tensor(ElementType::PRED, {static_cast<int64_t>(values.size())});
  one->text = arena_.copy(bytes);
  return one;
}
const Attribute* TreeMaker::elements(const Literal& literal) {
  Attribute* one = made(Kind::Elements);
  one->type = type(literal.shape());
  std::string bytes(static_cast<const char*>(literal.data()), literal.bytes());
  // Bits above a type's width are zeros.
  const int bits = element_bits(literal.shape().element_type());
  if (bits < 8) {
    for (char& c : bytes) c = static_cast<char>(c & ((1 << bits) - 1));
  }
  one->text = arena_.copy(bytes);
  return one;
}

}  // namespace lamella::hlo::stablehlo
