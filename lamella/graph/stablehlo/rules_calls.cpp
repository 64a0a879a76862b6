// Calls of what is not StableHLO's own: custom calls, and composites, which have a name and a
// decomposition.
#include <algorithm>

#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/stablehlo/names.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {
namespace {

using Kind = Attribute::Kind;

// The text of a dictionary may not grow beyond this: its parts can be named again and again.
constexpr size_t kMostText = size_t{1} << 26;

// A value as MLIR writes it: {a = 1 : i64, b = "s", c = dense<"0x0100"> : tensor<2xi8>}.
void append_value(std::string& text, const Attribute& value, int depth = 0) {
  if (depth > kMostNested || text.size() > kMostText) {
    throw Error("expected attributes of less text");
  }
  auto typed = [&] {
    return value.type != nullptr ? " : " + type_text(*value.type) : std::string();
  };
  switch (value.kind) {
    case Kind::Unit:
      text += "unit";
      return;
    case Kind::Boolean:
      text += value.integer != 0 ? "true" : "false";
      return;
    case Kind::Integer:
      text += value.type != nullptr && value.type->element == ElementType::U64
                  ? str(static_cast<uint64_t>(value.integer))
                  : str(value.integer);
      text += typed();
      return;
    case Kind::Real:
      text += real_text(value.real) + typed();
      return;
    case Kind::String:
      text += quoted(value.text);
      return;
    case Kind::Symbol:
      text += str("@", value.text);
      return;
    case Kind::TypeOf:
      text += type_text(*value.type);
      return;
    case Kind::List:
      text += '[';
      for (size_t i = 0; i < value.list.size(); ++i) {
        if (i != 0) text += ", ";
        append_value(text, *value.list[i], depth + 1);
      }
      text += ']';
      return;
    case Kind::Dictionary:
      text += '{';
      for (size_t i = 0; i < value.entries.size(); ++i) {
        const std::string_view name = value.entries[i].name;
        const bool is_word = !name.empty() && std::ranges::all_of(name, [](char c) {
          return c != '-' && Scanner::is_word(c);
        });
        text += str(i != 0 ? ", " : "", is_word ? std::string(name) : quoted(name), " = ");
        append_value(text, *value.entries[i].value, depth + 1);
      }
      text += '}';
      return;
    case Kind::Elements: {
      static constexpr char kDigits[] = "0123456789ABCDEF";
      text += "dense<\"0x";
      for (char c : value.text) {
        text += kDigits[static_cast<uint8_t>(c) >> 4];
        text += kDigits[static_cast<uint8_t>(c) & 15];
      }
      text += str("\">", typed());
      return;
    }
    default:
      text += value.text;
  }
}

// Layouts of arrays, one list of numbers for each; tuples and tokens have an empty one.
std::vector<Shape> with_layouts(Translation& t, const Operation& op, std::vector<Shape> shapes,
                                std::string_view name) {
  const Attribute* found = op.find(name);
  if (found == nullptr || found->list.empty()) return shapes;
  if (found->list.size() != shapes.size()) {
    t.fail(op, "expected '", name, "' for ", shapes.size(), " values, got ", found->list.size());
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].is_array()) continue;
    Operation one;
    one.name = op.name;
    one.position = op.position;
    one.attributes = {{name, found->list[i]}};
    std::vector<int64_t> order = t.integers(one, name);
    std::vector<int64_t> sizes(shapes[i].dimensions().begin(), shapes[i].dimensions().end());
    std::vector<int64_t> sorted = order;
    std::ranges::sort(sorted);
    bool is_order = sorted.size() == sizes.size();
    for (size_t d = 0; is_order && d < sorted.size(); ++d)
      is_order = sorted[d] == static_cast<int64_t>(d);
    if (!is_order) {
      t.fail(op, "expected '", name, "' to order the dimensions of ", shapes[i].to_string(false),
             ", got ", braced(order));
    }
    shapes[i].set_layout(std::move(order));
  }
  return shapes;
}

// The first elements along a dimension in a comparator's order: sorted, which is exact.
void approximate_top_k(Translation& t, const Operation& op) {
  const size_t count = op.results.size();
  Instructions operands = t.operands(op, 2 * count);
  operands.resize(count);  // behind them are initial values, which a sort does not need
  const Attribute* config = op.find("mhlo.backend_config");
  if (config == nullptr) config = &t.attribute(op, "backend_config");
  Operation inner;
  inner.name = op.name;
  inner.position = op.position;
  inner.attributes = config->entries;
  const int64_t dimension = t.integer(inner, "reduction_dim");
  const Attribute& called = t.attribute(op, "called_computations");
  if (called.list.size() != 1 || count == 0)
    t.fail(op, "expected a comparator, and a result for each operand");
  AttributeList list(t.module());
  list.integers(AttributeKey::Dimensions, std::span(&dimension, 1));
  list.computation(AttributeKey::ToApply, t.function(op, called.list[0]->text).computation);
  std::vector<Shape> shapes;
  for (const Instruction* one : operands) shapes.push_back(*one->shape);
  Instruction* sorted =
      t.add(Opcode::Sort, operands, std::move(list), count == 1 ? shapes[0] : Shape::tuple(shapes));
  Instructions results;
  for (size_t i = 0; i < count; ++i) {
    const Shape& shape = *t.shape(*op.results[i]->type, op.position);
    std::vector<SliceDimension> slices;
    for (int64_t size : shape.dimensions()) slices.push_back({0, size, 1});
    AttributeList sizes(t.module());
    sizes.slice(slices);
    Instruction* all = count == 1 ? sorted : t.element(sorted, i);
    results.push_back(t.add(Opcode::Slice, std::span(&all, 1), std::move(sizes), shape));
  }
  t.give(op, results);
}

}  // namespace

std::string real_text(double value) {
  std::string text = Literal::scalar(ElementType::F64, value).to_string();
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

void translate_composite(Translation& t, const Operation& op) {
  std::string_view name = t.text(op, "name");
  const Attribute* attributes = op.find("composite_attributes");
  if (translate_named(t, op, name, attributes)) return;
  const auto& callee = t.function(op, t.text(op, "decomposition"));
  AttributeList list = t.attributes(op);
  list.computation(AttributeKey::ToApply, callee.computation);
  list.flag(AttributeKey::IsComposite, true);
  std::string values = "{}";
  if (attributes != nullptr) append_value(values = "", *attributes);
  list.text(AttributeKey::FrontendAttributes,
            str("{composite.attributes=", quoted(values), ",composite.name=", quoted(name),
                ",composite.version=\"", t.integer(op, "version", 0), "\"}"));
  t.emit(op, t.operands(op), std::move(list));
}

void translate_custom_call(Translation& t, const Operation& op) {
  std::string_view target = t.text(op, "call_target_name");
  if (translate_named(t, op, target, op.find("mhlo.attributes"))) return;
  if (target == "ApproxTopK") return approximate_top_k(t, op);
  Instructions operands = t.operands(op);
  AttributeList list = t.attributes(op);
  // Artifacts keep a dictionary beside the call, whose version is then that of the typed FFI.
  const Attribute* config = op.find("mhlo.backend_config");
  if (config != nullptr) list.text(AttributeKey::ApiVersion, "API_VERSION_TYPED_FFI");
  if (config == nullptr) config = op.find("backend_config");
  if (config != nullptr) {
    std::string text;
    if (config->kind == Kind::Dictionary) {
      append_value(text, *config);
    } else if (!config->text.empty()) {
      text = quoted(config->text);
    }
    if (!text.empty() && text != "{}") list.text(AttributeKey::BackendConfig, text);
  }
  if (const Attribute* called = op.find("called_computations");
      called != nullptr && !called->list.empty()) {
    std::vector<Computation*> computations;
    for (const Attribute* one : called->list) {
      computations.push_back(t.function(op, one->text).computation);
    }
    list.computations(AttributeKey::CalledComputations, computations);
  }
  const Attribute* layouts = op.find("operand_layouts");
  const Attribute* result_layouts = op.find("result_layouts");
  auto is_given = [](const Attribute* one) { return one != nullptr && !one->list.empty(); };
  if (is_given(layouts) || is_given(result_layouts)) {
    std::vector<Shape> shapes;
    for (const Instruction* one : operands) shapes.push_back(*one->shape);
    list.shapes(AttributeKey::OperandLayoutConstraints,
                with_layouts(t, op, std::move(shapes), "operand_layouts"));
  }
  if (const Attribute* found = op.find("output_operand_aliases");
      found != nullptr && !found->list.empty()) {
    std::vector<OperandAlias> aliases;
    for (const Attribute* one : found->list) {
      Operation alias;
      alias.name = op.name;
      alias.position = op.position;
      alias.attributes = one->entries;
      aliases.push_back({t.integers(alias, "output_tuple_indices"),
                         t.integer(alias, "operand_index"),
                         t.integers(alias, "operand_tuple_indices")});
    }
    list.aliases(std::move(aliases));
  }
  std::vector<Shape> results;
  for (const Value* one : op.results) results.push_back(*t.shape(*one->type, op.position));
  // The layouts of a tuple that is the only result are those of its elements.
  const bool is_tuple = results.size() == 1 && results[0].is_tuple() && is_given(result_layouts);
  std::vector<Shape> parts = is_tuple ? results[0].tuple_shapes() : results;
  parts = with_layouts(t, op, std::move(parts), "result_layouts");
  const bool is_one = op.results.size() == 1 && !is_tuple;
  Instruction* made = t.add(Opcode::CustomCall, operands, std::move(list),
                            is_one ? parts[0] : Shape::tuple(std::move(parts)));
  op.results.size() == 1 ? t.give(op, {made}) : t.give_parts(op, made);
}

}  // namespace lamella::hlo::stablehlo
