// Products of arrays: dot, dot_general, einsum, and how they are computed.
#include <algorithm>

#include "lamella/graph/stablehlo/export.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {

namespace {

// Algorithms by the types that they round to, that they add up in, and how many products they make.
struct Algorithm {
  std::string_view lhs, accumulation;
  int64_t products;
  std::string_view name;
};
constexpr Algorithm kAlgorithms[] = {
    {"f16", "f16", 1, "dot_f16_f16_f16"},       {"f16", "f32", 1, "dot_f16_f16_f32"},
    {"bf16", "bf16", 1, "dot_bf16_bf16_bf16"},  {"bf16", "f32", 1, "dot_bf16_bf16_f32"},
    {"bf16", "f32", 3, "dot_bf16_bf16_f32_x3"}, {"bf16", "f32", 6, "dot_bf16_bf16_f32_x6"},
    {"bf16", "f32", 9, "dot_bf16_bf16_f32_x9"}, {"tf32", "f32", 1, "dot_tf32_tf32_f32"},
    {"tf32", "f32", 3, "dot_tf32_tf32_f32_x3"}, {"f32", "f32", 1, "dot_f32_f32_f32"},
    {"f64", "f64", 1, "dot_f64_f64_f64"},
};
std::string_view type_name(const Attribute* type) {
  if (type == nullptr || type->type == nullptr) return {};
  if (type->type->kind == Type::Kind::Element) return element_name(type->type->element);
  return type->type->name;
}
void add_algorithm(Translation& t, const Operation& op, AttributeList& list) {
  std::string_view lhs = type_name(op.find("lhs_precision_type"));
  if (lhs.empty() || lhs == "none") return;
  std::string_view accumulation = type_name(op.find("accumulation_type"));
  if (lhs.starts_with("f8")) {
    const bool is_fast = t.integer(op, "allow_imprecise_accumulation", 0) != 0;
    list.text(AttributeKey::Algorithm,
              is_fast ? "dot_any_f8_any_f8_f32_fast_accum" : "dot_any_f8_any_f8_f32");
    return;
  }
  const int64_t products = t.integer(op, "num_primitive_operations", 1);
  for (const Algorithm& one : kAlgorithms) {
    if (one.lhs == lhs && one.accumulation == accumulation && one.products == products) {
      list.text(AttributeKey::Algorithm, one.name);
      return;
    }
  }
  t.fail(op, "expected an algorithm that HLO has, got ", products, " products of ", lhs,
         " added up in ", accumulation);
}

}  // namespace

std::vector<Named> algorithm_attributes(std::string_view word, TreeMaker& make) {
  auto other = [&](std::string_view name) {
    auto* one = make.arena().make<Type>();
    one->name = name;
    return one;
  };
  const Algorithm* found = nullptr;
  for (const Algorithm& one : kAlgorithms) {
    if (one.name == word) found = &one;
  }
  static constexpr const char* kNames[] = {
      "lhs_precision_type",          "rhs_precision_type",  "accumulation_type",
      "lhs_component_count",         "rhs_component_count", "num_primitive_operations",
      "allow_imprecise_accumulation"};
  std::vector<Named> made;
  if (found == nullptr) {
    if (!word.empty() && word != "dot_unset") {
      throw Error(str("to_stablehlo: expected an algorithm that StableHLO has, got '", word, "'"));
    }
    for (const char* name : kNames) made.push_back({name, make.type_of(other("none"))});
    return made;
  }
  auto type = [&](std::string_view name) {
    Type* one = other(name);
    if (name == "tf32") return make.type_of(one);
    one->kind = Type::Kind::Element;
    one->name = {};
    one->element = *element_from_name(name);
    return make.type_of(one);
  };
  const Attribute* one = make.integer(1);
  return {{kNames[0], type(found->lhs)},
          {kNames[1], type(found->lhs)},
          {kNames[2], type(found->accumulation)},
          {kNames[3], one},
          {kNames[4], one},
          {kNames[5], make.integer(found->products)},
          {kNames[6], make.boolean(false)}};
}

void translate_dot_general(Translation& t, const Operation& op) {
  AttributeList list = t.attributes(op);
  auto add = [&](AttributeKey key, const char* name) {
    auto numbers = t.integers(op, name);
    if (!numbers.empty()) list.integers(key, numbers);
  };
  add(AttributeKey::LhsBatchDims, "lhs_batching_dimensions");
  add(AttributeKey::RhsBatchDims, "rhs_batching_dimensions");
  add(AttributeKey::LhsContractingDims, "lhs_contracting_dimensions");
  add(AttributeKey::RhsContractingDims, "rhs_contracting_dimensions");
  add_precision(t, op, list);
  add_algorithm(t, op, list);
  t.emit(op, t.operands(op, 2), std::move(list));
}
// The last dimension of the left by the first of the right.
void translate_dot(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 2);
  AttributeList list = t.attributes(op);
  const int64_t last = operands[0]->shape->rank() - 1, first = 0;
  if (last < 0) t.fail(op, "expected arrays of a dimension or more");
  list.integers(AttributeKey::LhsContractingDims, std::span(&last, 1));
  list.integers(AttributeKey::RhsContractingDims, std::span(&first, 1));
  add_precision(t, op, list);
  t.emit(op, operands, std::move(list));
}

// ---- Einstein's notation -----------------------------------------------------------------------

namespace {

Instruction* transposed(Translation& t, Instruction* one, const std::vector<int64_t>& order) {
  std::vector<int64_t> sizes;
  for (int64_t d : order) sizes.push_back(one->shape->dimension(d));
  AttributeList list(t.module());
  list.integers(AttributeKey::Dimensions, order);
  return t.add(Opcode::Transpose, std::span(&one, 1), std::move(list),
               one->shape->with_dimensions(sizes));
}
// "ab,bc->ac": the labels of each operand, and of the result behind the arrow.
std::vector<std::string> labels_of(const Translation& t, const Operation& op, size_t operands) {
  std::vector<std::string> parts(1);
  for (char c : t.text(op, "einsum_config")) {
    if (c == ',' || c == '>') {
      parts.emplace_back();
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (parts.back().find(c) != std::string::npos)
        t.fail(op, "expected each label once in an operand");
      parts.back() += c;
    } else if (c != '-' && c != ' ') {
      t.fail(op, "expected labels that are letters, got '", t.text(op, "einsum_config"), "'");
    }
  }
  if (parts.size() != operands + 1) t.fail(op, "expected labels of the operands and of the result");
  return parts;
}
void require_rank(const Translation& t, const Operation& op, const Instruction* one,
                  const std::string& labels) {
  if (one->shape->rank() != static_cast<int64_t>(labels.size())) {
    t.fail(op, "expected ", labels.size(), " dimensions, got ", one->shape->to_string(false));
  }
}
// The result with these labels in the order of others.
void give_ordered(Translation& t, const Operation& op, Instruction* made, const std::string& labels,
                  const std::string& wanted) {
  std::vector<int64_t> order;
  for (char c : wanted) order.push_back(static_cast<int64_t>(labels.find(c)));
  if (labels.size() != wanted.size() || std::ranges::find(order, -1) != order.end()) {
    t.fail(op, "expected labels of the result that operands have");
  }
  t.give(op, {labels == wanted ? made : transposed(t, made, order)});
}

}  // namespace

void translate_einsum(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 2);
  const std::vector<std::string> labels = labels_of(t, op, 2);
  std::vector<int64_t> batch[2], summed[2], sizes, free_sizes;
  std::string made, free;
  for (size_t side = 0; side < 2; ++side) {
    require_rank(t, op, operands[side], labels[side]);
    const std::string& other = labels[1 - side];
    for (size_t d = 0; d < labels[side].size(); ++d) {
      const char c = labels[side][d];
      const bool is_kept = labels[2].find(c) != std::string::npos;
      const auto at = static_cast<int64_t>(d);
      const int64_t size = operands[side]->shape->dimension(at);
      if (other.find(c) == std::string::npos) {
        if (!is_kept)
          t.fail(op, "expected sums over labels of both operands, got '", std::string(1, c), "'");
        free += c;
        free_sizes.push_back(size);
      } else if (side == 0) {
        (is_kept ? batch : summed)[0].push_back(at);
        (is_kept ? batch : summed)[1].push_back(static_cast<int64_t>(other.find(c)));
        if (is_kept) made += c, sizes.push_back(size);
      }
    }
  }
  AttributeList list = t.attributes(op);
  if (!batch[0].empty()) {
    list.integers(AttributeKey::LhsBatchDims, batch[0]);
    list.integers(AttributeKey::RhsBatchDims, batch[1]);
  }
  list.integers(AttributeKey::LhsContractingDims, summed[0]);
  list.integers(AttributeKey::RhsContractingDims, summed[1]);
  sizes.insert(sizes.end(), free_sizes.begin(), free_sizes.end());
  const Shape shape = t.result_shape(op).with_dimensions(sizes);
  give_ordered(t, op, t.add(Opcode::Dot, operands, std::move(list), shape), made + free, labels[2]);
}
// Sums over the labels that the result has not.
void translate_unary_einsum(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 1);
  const std::vector<std::string> labels = labels_of(t, op, 1);
  require_rank(t, op, operands[0], labels[0]);
  std::vector<int64_t> summed, sizes;
  std::string kept;
  for (size_t d = 0; d < labels[0].size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    if (labels[1].find(labels[0][d]) == std::string::npos) {
      summed.push_back(at);
    } else {
      kept += labels[0][d];
      sizes.push_back(operands[0]->shape->dimension(at));
    }
  }
  const ElementType type = operands[0]->shape->element_type();
  operands.push_back(t.constant(Literal(Shape::scalar(type))));
  AttributeList list = t.attributes(op);
  list.integers(AttributeKey::Dimensions, summed);
  list.computation(AttributeKey::ToApply, t.sum(type));
  const Shape shape = operands[0]->shape->with_dimensions(sizes);
  give_ordered(t, op, t.add(Opcode::Reduce, operands, std::move(list), shape), kept, labels[1]);
}

}  // namespace lamella::hlo::stablehlo
