// Merges additions of rows, and relu, into products.
#include "lamella/graph/passes/product_epilogues.h"

#include "lamella/core/error.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

// x y + row, of matrices; then perhaps a relu.
struct Sum {
  Instruction *row, *x, *y;
  int64_t rows, sums, width;
  bool is_transposed;  // y
  int uses;            // of the result
};

class Maker {
 public:
  explicit Maker(Rewriter& to) : to_(to) {}

  Instruction* rule(const Instruction& i) {
    switch (i.opcode) {
      case Opcode::Add:
        for (size_t n = 0; n < 2; ++n) {
          if (Instruction* made = add(i, i.operands[n], i.operands[1 - n])) return made;
        }
        return nullptr;
      case Opcode::Convert:
        return narrowed(i);
      case Opcode::Maximum:
        for (size_t n = 0; n < 2; ++n) {
          if (is_zero(i.operands[1 - n])) return relu(i, i.operands[n], 1);
        }
        return nullptr;
      case Opcode::Select: {
        const Instruction& compared = *i.operands[0];
        const bool is_relu = compared.opcode == Opcode::Compare && to_.uses(&compared) == 1 &&
                             compared.operands[0] == i.operands[2] &&
                             compared.text(AttributeKey::Direction) == "LT" &&
                             is_zero(compared.operands[1]) && is_zero(i.operands[1]);
        return is_relu ? relu(i, i.operands[2], 2) : nullptr;
      }
      default:
        return nullptr;
    }
  }

 private:
  static bool is_zero(const Instruction* i) {
    const Literal* repeated = repeated_constant(i);
    return repeated != nullptr && is_floating(i->shape->element_type()) &&
           repeated->real_at(0) == 0;
  }
  // What is converted to an operand, in this type; null if it is not.
  static Instruction* in_type(Instruction* i, ElementType type) {
    if (i->shape->element_type() == type) return i;
    const bool is_wider = i->opcode == Opcode::Convert &&
                          i->shape->element_type() == ElementType::F32 &&
                          i->operand_shape(0).element_type() == type;
    return is_wider ? i->operands[0] : nullptr;
  }

  Instruction* call(const Instruction& i, const Sum& sum, std::string_view target) {
    Instruction* y = sum.is_transposed ? to_.transpose(sum.y, {1, 0}) : sum.y;
    Instruction* made =
        to_.add(Opcode::CustomCall, Shape::array(i.shape->element_type(), {sum.rows, sum.width}),
                {to_.reshape(sum.row, {sum.width}), to_.reshape(sum.x, {sum.rows, sum.sums}), y},
                {to_.text(AttributeKey::CustomCallTarget, target),
                 to_.text(AttributeKey::BackendConfig, "\"(%0, %1, %2)\"")});
    auto sizes = i.shape->dimensions();
    return to_.reshape(made, {sizes.begin(), sizes.end()});
  }
  Instruction* sum_call(const Instruction& i, Sum sum) {
    sum.uses = to_.uses(&i);
    Instruction* made = call(i, sum, "aten::addmm");
    sums_.insert_or_assign(made, sum);
    return made;
  }

  Instruction* add(const Instruction& i, Instruction* product, Instruction* row) {
    const ElementType type = i.shape->element_type();
    if (type != ElementType::F32 && type != ElementType::F16 && type != ElementType::BF16) {
      return nullptr;
    }
    while (product->opcode == Opcode::Reshape && to_.uses(product) == 1) {
      product = product->operands[0];
    }
    if (product->opcode != Opcode::Dot || to_.uses(product) != 1) return nullptr;
    Instruction *x = product->operands[0], *y = product->operands[1];
    auto left = product->integers(AttributeKey::LhsContractingDims);
    auto right = product->integers(AttributeKey::RhsContractingDims);
    if (!product->integers(AttributeKey::LhsBatchDims).empty() || left.size() != 1 ||
        right.size() != 1 || y->shape->rank() != 2 || left[0] != x->shape->rank() - 1 ||
        x->shape->element_type() != type || y->shape->element_type() != type ||
        i.shape->elements() == 0 || i.shape->rank() == 0) {
      return nullptr;
    }
    const int64_t sums = x->shape->dimension(left[0]), width = y->shape->dimension(1 - right[0]);
    if (sums == 0 || i.shape->dimension(i.shape->rank() - 1) != width) return nullptr;
    const int64_t rows = i.shape->elements() / width;
    if (Instruction* repeated = repeated_row(row, width)) {
      row = repeated;
    } else if (rows != 1) {
      return nullptr;
    }
    return sum_call(i, {row, x, y, rows, sums, width, right[0] == 1, 0});
  }
  // The operand of a broadcast along the last dimension alone.
  static Instruction* repeated_row(Instruction* i, int64_t width) {
    while (moves_ones(*i) && i->shape->dimension(i->shape->rank() - 1) == width) {
      i = i->operands[0];
    }
    if (i->opcode != Opcode::Broadcast || i->operand_shape(0).elements() != width) return nullptr;
    auto dims = i->integers(AttributeKey::Dimensions);
    const bool is_row =
        !dims.empty() && dims.back() == i->shape->rank() - 1 &&
        i->operand_shape(0).dimension(static_cast<int64_t>(dims.size()) - 1) == width;
    return is_row ? i->operands[0] : nullptr;
  }

  // Products of float16 and bfloat16 are computed in float32 and rounded once by libraries as well.
  Instruction* narrowed(const Instruction& i) {
    const ElementType type = i.shape->element_type();
    Instruction* wide = i.operands[0];
    if ((type != ElementType::F16 && type != ElementType::BF16) ||
        wide->shape->element_type() != ElementType::F32) {
      return nullptr;
    }
    if (auto found = sums_.find(wide); found != sums_.end() && found->second.uses == 1) {
      Sum sum = found->second;
      for (Instruction** one : {&sum.row, &sum.x, &sum.y}) {
        *one = in_type(*one, type);
        if (*one == nullptr) return nullptr;
      }
      return sum_call(i, sum);
    }
    Instruction* product = wide;
    while (product->opcode == Opcode::Reshape && to_.uses(product) == 1) {
      product = product->operands[0];
    }
    if (product->opcode != Opcode::Dot || to_.uses(product) != 1) return nullptr;
    Instruction *x = in_type(product->operands[0], type), *y = in_type(product->operands[1], type);
    if (x == nullptr || y == nullptr) return nullptr;
    auto shape = product->shape->dimensions(), sizes = i.shape->dimensions();
    Instruction* made = to_.add(Opcode::Dot, Shape::array(type, {shape.begin(), shape.end()}),
                                {x, y}, {product->attributes.begin(), product->attributes.end()});
    return to_.reshape(made, {sizes.begin(), sizes.end()});
  }
  Instruction* relu(const Instruction& i, Instruction* of, int uses) {
    auto found = sums_.find(of);
    if (found == sums_.end() || found->second.uses != uses) return nullptr;
    return call(i, found->second, "aten::_addmm_activation");
  }

  Rewriter& to_;
  std::unordered_map<const Instruction*, Sum> sums_;  // by the results of calls
};

}  // namespace

int64_t add_rows_in_products(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    Maker maker(rewriter);
    changed += rewriter.rewrite([&](Instruction* i) { return maker.rule(*i); });
  }
  return changed;
}

}  // namespace lamella::hlo
