// Recognizes the pattern of attention and replaces it by a call.
//
// Note [Shapes of attention]
//   Programs put dimensions of size 1 in different positions, so shapes are compared without them.
//   Then scores are [batch..., queries, keys], or [batch..., keys] for a single query, and so is
//   every value between the two products. The operator has two batch dimensions; several leading
//   batch dimensions are joined to its first one.
#include "lamella/graph/passes/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "lamella/core/error.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

Instruction* without_reshapes(Instruction* i) {
  while (moves_ones(*i)) i = i->operands[0];
  return i;
}
// The operand of a broadcast along the last dimension that is not 1; null for anything else.
Instruction* of_rows(Instruction* i) {
  i = without_reshapes(i);
  if (i->opcode != Opcode::Broadcast) return nullptr;
  Numbers rank(static_cast<size_t>(i->shape->rank()), -1);  // among the sizes that are not 1
  int64_t count = 0;
  for (int64_t d = 0; d < i->shape->rank(); ++d) {
    if (i->shape->dimension(d) != 1) rank[static_cast<size_t>(d)] = count++;
  }
  int64_t next = 0;
  auto dims = i->integers(AttributeKey::Dimensions);
  for (size_t n = 0; n < dims.size(); ++n) {
    if (i->operand_shape(0).dimension(static_cast<int64_t>(n)) == 1) continue;
    if (rank[static_cast<size_t>(dims[n])] != next++) return nullptr;
  }
  return next + 1 == count ? without_reshapes(i->operands[0]) : nullptr;
}
// For a reduction, by this opcode from its identity, of the last dimension that is not 1: its
// operand. Null for anything else.
Instruction* reduced(Instruction* i, Opcode opcode) {
  if (i == nullptr || i->opcode != Opcode::Reduce || i->operands.size() != 2) return nullptr;
  const Computation& by = *i->computation(AttributeKey::ToApply);
  if (by.instructions.size() != 3 || by.root->opcode != opcode ||
      by.root->operands[0]->opcode != Opcode::Parameter ||
      by.root->operands[1]->opcode != Opcode::Parameter ||
      by.root->operands[0] == by.root->operands[1]) {
    return nullptr;
  }
  const Literal* first = repeated_constant(i->operands[1]);
  double wanted = opcode == Opcode::Add ? 0 : -INFINITY;
  if (first == nullptr || first->real_at(0) != wanted) return nullptr;
  const Shape& from = i->operand_shape(0);
  int64_t last = from.rank() - 1;
  while (last > 0 && from.dimension(last) == 1) --last;
  bool found = false;
  for (int64_t d : i->integers(AttributeKey::Dimensions)) {
    if (d != last && from.dimension(d) != 1) return nullptr;
    found = found || d == last;
  }
  return found && from.dimension(last) != 1 ? without_reshapes(i->operands[0]) : nullptr;
}

// A product with one free dimension on each side and one summed dimension, not counting sizes of 1.
struct Product {
  Instruction* dot;
  Numbers batch[2], free[2], summed[2];  // dimensions of each operand
  int64_t size(size_t side, const Numbers& dims) const {
    int64_t n = 1;
    for (int64_t d : dims) n *= dot->operand_shape(side).dimension(d);
    return n;
  }
};
std::optional<Product> product_of(Instruction* i) {
  if (i->opcode != Opcode::Dot || i->shape->element_type() != ElementType::F32) return std::nullopt;
  constexpr AttributeKey kBatch[] = {AttributeKey::LhsBatchDims, AttributeKey::RhsBatchDims};
  constexpr AttributeKey kSummed[] = {AttributeKey::LhsContractingDims,
                                      AttributeKey::RhsContractingDims};
  Product p{i, {}, {}, {}};
  for (size_t side = 0; side < 2; ++side) {
    const Shape& shape = i->operand_shape(side);
    if (shape.element_type() != ElementType::F32) return std::nullopt;
    auto batch = i->integers(kBatch[side]), summed = i->integers(kSummed[side]);
    p.batch[side].assign(batch.begin(), batch.end());
    p.summed[side].assign(summed.begin(), summed.end());
    int wide = 0, wide_sum = 0;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (std::ranges::find(batch, d) != batch.end()) continue;
      if (std::ranges::find(summed, d) != summed.end()) {
        wide_sum += shape.dimension(d) != 1 ? 1 : 0;
        continue;
      }
      p.free[side].push_back(d);
      wide += shape.dimension(d) != 1 ? 1 : 0;
    }
    if (wide > 1 || wide_sum > 1) return std::nullopt;
  }
  return p;
}

struct Attention {
  Product scores, result;
  size_t query, key;      // sides of `scores`
  size_t value, weights;  // sides of `result`
  double scale = 1;
  Instruction* mask = nullptr;
};

class Matcher {
 public:
  explicit Matcher(Rewriter& to) : to_(to) {}

  std::optional<Attention> match(Instruction* i) const {
    std::optional<Product> result = product_of(i);
    if (!result) return std::nullopt;
    for (size_t weights : {size_t{0}, size_t{1}}) {
      Instruction* scores = scores_of(without_reshapes(i->operands[weights]));
      if (scores == nullptr) continue;
      Attention found{*result, *result, 0, 0, 1 - weights, weights, 1, nullptr};
      if (read_scores(scores, &found) && fits(found)) return found;
    }
    return std::nullopt;
  }

 private:
  // Instructions of the pattern may be removed only if nothing else uses them.
  bool is_read(const Instruction* i, int times) const { return to_.uses(i) == times; }
  static bool same_sizes(const Instruction* a, const Instruction* b) {
    return without_ones(*a->shape) == without_ones(*b->shape);
  }

  // If the instruction is softmax(x) along the last dimension: x. Otherwise null.
  Instruction* scores_of(Instruction* divide) const {
    if (divide->opcode != Opcode::Divide || !is_read(divide, 1)) return nullptr;
    Instruction* power = without_reshapes(divide->operands[0]);
    if (power->opcode != Opcode::Exp || !is_read(power, 2)) return nullptr;
    if (reduced(of_rows(divide->operands[1]), Opcode::Add) != power) return nullptr;
    Instruction* gap = without_reshapes(power->operands[0]);
    if (gap->opcode != Opcode::Subtract || !is_read(gap, 1)) return nullptr;
    Instruction* most = of_rows(gap->operands[1]);
    if (most != nullptr && most->opcode == Opcode::Maximum) {
      const Literal* least = repeated_constant(most->operands[1]);
      if (least == nullptr || least->real_at(0) != -INFINITY) return nullptr;
      most = without_reshapes(most->operands[0]);
    }
    Instruction* scores = reduced(most, Opcode::Maximum);
    if (scores == nullptr || without_reshapes(gap->operands[0]) != scores) return nullptr;
    return is_read(scores, 2) && same_sizes(scores, divide) ? scores : nullptr;
  }

  // Reads scores of the form [mask +] [scale *] product.
  bool read_scores(Instruction* x, Attention* found) const {
    bool first = true;
    auto once = [&](const Instruction* i) {
      bool fine = first || is_read(i, 1);
      first = false;
      return fine;
    };
    if (x->opcode == Opcode::Add) {
      once(x);
      bool left = is_scaled(x->operands[0]), right = is_scaled(x->operands[1]);
      if (left == right) return false;
      found->mask = x->operands[left ? 1 : 0];
      x = without_reshapes(x->operands[left ? 0 : 1]);
    }
    if (x->opcode == Opcode::Multiply || x->opcode == Opcode::Divide) {
      if (!once(x)) return false;
      size_t side = x->opcode == Opcode::Multiply && repeated_constant(x->operands[0]) ? 0 : 1;
      const Literal* factor = repeated_constant(x->operands[side]);
      if (factor == nullptr) return false;
      double number = factor->real_at(0);
      found->scale = x->opcode == Opcode::Divide ? 1 / number : number;
      if (!(std::isfinite(found->scale) && found->scale > 0)) return false;
      x = without_reshapes(x->operands[1 - side]);
    }
    std::optional<Product> scores = product_of(x);
    if (!scores || !once(x)) return false;
    found->scores = *scores;
    return true;
  }
  static bool is_scaled(Instruction* x) {
    x = without_reshapes(x);
    if (x->opcode == Opcode::Multiply) {
      for (size_t side : {size_t{0}, size_t{1}}) {
        bool product = without_reshapes(x->operands[side])->opcode == Opcode::Dot;
        if (product && repeated_constant(x->operands[1 - side]) != nullptr) return true;
      }
      return false;
    }
    if (x->opcode == Opcode::Divide) {
      return without_reshapes(x->operands[0])->opcode == Opcode::Dot &&
             repeated_constant(x->operands[1]) != nullptr;
    }
    return x->opcode == Opcode::Dot;
  }

  // Sets the sides of the products; true if their dimensions are those of attention.
  static bool fits(Attention& a) {
    const Product &scores = a.scores, &result = a.result;
    const Shape& shape = *scores.dot->shape;
    // The dimensions of scores are [batch..., free of the left, free of the right].
    a.query = 0;
    a.key = 1;
    int64_t keys = result.size(a.weights, result.summed[a.weights]);
    if (keys == 1 || scores.size(a.key, scores.free[a.key]) != keys) return false;
    Numbers sizes = without_ones(shape);
    Numbers weights = without_ones(result.dot->operand_shape(a.weights));
    if (sizes != weights) return false;
    // The second product must sum over the keys, which are last, and have the batch dimensions of
    // the first product in order.
    const Shape& w = result.dot->operand_shape(a.weights);
    int64_t last = w.rank() - 1;
    while (last > 0 && w.dimension(last) == 1) --last;
    if (std::ranges::find(result.summed[a.weights], last) == result.summed[a.weights].end()) {
      return false;
    }
    auto wide = [](const Product& p, size_t side, const Numbers& dims) {
      Numbers kept;
      for (int64_t d : dims) {
        if (p.dot->operand_shape(side).dimension(d) != 1) kept.push_back(d);
      }
      return kept;
    };
    Numbers batch = wide(result, a.weights, result.batch[a.weights]);
    if (!std::ranges::is_sorted(batch)) return false;
    Numbers first = wide(scores, 0, scores.batch[0]);
    if (batch.size() != first.size()) return false;
    for (size_t n = 0; n < batch.size(); ++n) {
      if (w.dimension(batch[n]) != scores.dot->operand_shape(0).dimension(first[n])) return false;
    }
    // The queries must follow the batch dimensions.
    Numbers free = wide(result, a.weights, result.free[a.weights]);
    if (!free.empty() && !batch.empty() && free[0] < batch.back()) return false;
    return result.size(a.weights, result.free[a.weights]) ==
           scores.size(a.query, scores.free[a.query]);
  }

  Rewriter& to_;
};

class Writer {
 public:
  Writer(Rewriter& to, const Attention& a) : to_(to), a_(a) {}

  // Returns null if the operator does not support the mask.
  Instruction* write() {
    const Product &scores = a_.scores, &result = a_.result;
    Numbers batches;
    for (int64_t d : scores.batch[0]) {
      int64_t size = scores.dot->operand_shape(0).dimension(d);
      if (size != 1) batches.push_back(size);
    }
    heads_ = batches.empty() ? 1 : batches.back();
    batch_ = 1;
    for (size_t n = 0; n + 1 < batches.size(); ++n) batch_ *= batches[n];
    queries_ = scores.size(a_.query, scores.free[a_.query]);
    keys_ = scores.size(a_.key, scores.free[a_.key]);
    int64_t width = scores.size(0, scores.summed[0]);
    int64_t value_width = result.size(a_.value, result.free[a_.value]);
    if (batch_ * heads_ * queries_ * keys_ * width * value_width == 0) return nullptr;
    if (result.dot->shape->rank() == 0) return nullptr;
    std::vector<Instruction*> operands = {
        ordered(scores, a_.query, scores.free[a_.query], scores.summed[a_.query],
                {batch_, heads_, queries_, width}),
        ordered(scores, a_.key, scores.free[a_.key], scores.summed[a_.key],
                {batch_, heads_, keys_, width}),
        ordered(result, a_.value, result.summed[a_.value], result.free[a_.value],
                {batch_, heads_, keys_, value_width})};
    if (a_.mask != nullptr) {
      Instruction* mask = mask_of(batches);
      if (mask == nullptr) return nullptr;
      operands.push_back(mask);
    }
    Shape out = Shape::array(ElementType::F32, {batch_, heads_, queries_, value_width});
    Shape sums = Shape::array(ElementType::F32, {batch_, heads_, queries_});
    const char* mask = a_.mask != nullptr ? ", attn_mask=%3" : "";
    // Enough digits to print a float64 exactly.
    char scale[32];
    std::snprintf(scale, sizeof(scale), "%.17g", a_.scale);
    bool plain = std::string_view(scale).find_first_of(".e") == std::string_view::npos;
    std::string arguments =
        str("\"(%0, %1, %2, 0.0, False", mask, ", scale=", scale, plain ? ".0" : "", ")\"");
    Instruction* call = to_.add(Opcode::CustomCall, Shape::tuple({out, sums}), operands,
                                {to_.text(AttributeKey::CustomCallTarget,
                                          "aten::_scaled_dot_product_flash_attention_for_cpu"),
                                 Rewriter::integer(AttributeKey::CustomCallHasSideEffect, 1),
                                 to_.text(AttributeKey::BackendConfig, arguments)});
    Instruction* made =
        to_.add(Opcode::GetTupleElement, out, {call}, {Rewriter::integer(AttributeKey::Index, 0)});
    // The operator returns zeros for a query without keys; the pattern gives NaN.
    Instruction* total =
        to_.add(Opcode::GetTupleElement, sums, {call}, {Rewriter::integer(AttributeKey::Index, 1)});
    Instruction* none =
        to_.add(Opcode::Compare, sums.with_element_type(ElementType::PRED),
                {total, to_.full(sums, -INFINITY)}, {to_.text(AttributeKey::Direction, "EQ")});
    // The dimensions of the second product: free of the left, then free of the right.
    Instruction* nan = to_.full(out, NAN);
    Instruction* where = to_.broadcast(none, out, {0, 1, 2});
    if (a_.value == 0) {
      made = to_.transpose(made, {0, 1, 3, 2});
      where = to_.broadcast(none, *made->shape, {0, 1, 3});
      nan = to_.full(*made->shape, NAN);
    }
    made = to_.add(Opcode::Select, *made->shape, {where, nan, made});
    auto sizes = result.dot->shape->dimensions();
    return to_.reshape(made, Numbers(sizes.begin(), sizes.end()));
  }

 private:
  // An operand of a product, reshaped to [batch, heads, rows, columns].
  Instruction* ordered(const Product& p, size_t side, const Numbers& rows, const Numbers& columns,
                       const Numbers& sizes) {
    Numbers order = p.batch[side];
    order.insert(order.end(), rows.begin(), rows.end());
    order.insert(order.end(), columns.begin(), columns.end());
    return to_.reshape(to_.transpose(p.dot->operands[side], order), sizes);
  }
  Instruction* mask_of(const Numbers& batches) {
    Instruction* mask = without_reshapes(a_.mask);
    Numbers scores = batches, sizes;
    if (queries_ != 1) scores.push_back(queries_);
    scores.push_back(keys_);
    if (mask->opcode != Opcode::Broadcast || batches.size() > 2) {
      return to_.reshape(a_.mask, {batch_, heads_, queries_, keys_});
    }
    // Repeated dimensions keep size 1.
    Numbers kept(scores.size(), 1);
    Numbers rank(static_cast<size_t>(mask->shape->rank()), -1);
    int64_t count = 0;
    for (int64_t d = 0; d < mask->shape->rank(); ++d) {
      if (mask->shape->dimension(d) != 1) rank[static_cast<size_t>(d)] = count++;
    }
    auto dims = mask->integers(AttributeKey::Dimensions);
    if (!std::ranges::is_sorted(dims)) return nullptr;
    for (size_t n = 0; n < dims.size(); ++n) {
      int64_t size = mask->operand_shape(0).dimension(static_cast<int64_t>(n));
      if (size != 1) kept[static_cast<size_t>(rank[static_cast<size_t>(dims[n])])] = size;
    }
    size_t next = 0;
    sizes.push_back(batches.size() > 1 ? kept[next++] : 1);
    sizes.push_back(!batches.empty() ? kept[next++] : 1);
    sizes.push_back(queries_ != 1 ? kept[next++] : 1);
    sizes.push_back(kept[next]);
    return to_.reshape(mask->operands[0], sizes);
  }

  Rewriter& to_;
  const Attention& a_;
  int64_t batch_ = 1, heads_ = 1, queries_ = 1, keys_ = 1;
};

}  // namespace

int64_t find_attention(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    Matcher matcher(rewriter);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      if (i->opcode != Opcode::Dot) return nullptr;
      std::optional<Attention> found = matcher.match(i);
      return found ? Writer(rewriter, *found).write() : nullptr;
    });
  }
  return changed;
}

}  // namespace lamella::hlo
