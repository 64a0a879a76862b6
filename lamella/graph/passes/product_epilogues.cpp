// Merges additions of rows, and relu, into products.
#include "lamella/graph/passes/product_epilogues.h"

#include "lamella/core/error.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

class Maker {
 public:
  explicit Maker(Rewriter& to) : to_(to) {}

  Instruction* rule(const Instruction& i) {
    switch (i.opcode) {
      case Opcode::Add:
        for (size_t n = 0; n < 2; ++n) {
          if (Instruction* made = sum(i, i.operands[n], i.operands[1 - n])) return made;
        }
        return nullptr;
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
  // The operands of a call, and how often its result is used.
  struct Sum {
    std::vector<Instruction*> operands;
    Shape shape;
    int uses;
  };

  static bool is_zero(const Instruction* i) {
    const Literal* repeated = repeated_constant(i);
    return repeated != nullptr && is_floating(i->shape->element_type()) &&
           repeated->real_at(0) == 0;
  }
  Instruction* call(const Instruction& i, const Sum& sum, std::string_view target,
                    std::string_view arguments) {
    Instruction* made = to_.add(Opcode::CustomCall, sum.shape, sum.operands,
                                {to_.text(AttributeKey::CustomCallTarget, target),
                                 to_.text(AttributeKey::BackendConfig, arguments)});
    auto sizes = i.shape->dimensions();
    return to_.reshape(made, {sizes.begin(), sizes.end()});
  }

  Instruction* sum(const Instruction& i, Instruction* product, Instruction* row) {
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
    if (product->integers(AttributeKey::LhsBatchDims).size() != 0 || left.size() != 1 ||
        right.size() != 1 || y->shape->rank() != 2 || left[0] != x->shape->rank() - 1 ||
        x->shape->element_type() != type || y->shape->element_type() != type ||
        i.shape->elements() == 0 || i.shape->rank() == 0) {
      return nullptr;
    }
    const int64_t sums = x->shape->dimension(left[0]), width = y->shape->dimension(1 - right[0]);
    const int64_t last = i.shape->rank() - 1;
    if (sums == 0 || i.shape->dimension(last) != width) return nullptr;
    while (moves_ones(*row) && row->shape->dimension(row->shape->rank() - 1) == width) {
      row = row->operands[0];
    }
    if (row->opcode != Opcode::Broadcast || row->operand_shape(0).elements() != width) {
      return nullptr;
    }
    auto dims = row->integers(AttributeKey::Dimensions);
    if (dims.empty() || dims.back() != row->shape->rank() - 1 ||
        row->operand_shape(0).dimension(static_cast<int64_t>(dims.size()) - 1) != width) {
      return nullptr;
    }
    const int64_t rows = i.shape->elements() / width;
    if (right[0] == 1) y = to_.transpose(y, {1, 0});
    const Sum made{{to_.reshape(row->operands[0], {width}), to_.reshape(x, {rows, sums}), y},
                   Shape::array(type, {rows, width}),
                   to_.uses(&i)};
    Instruction* result = call(i, made, "aten::addmm", "\"(%0, %1, %2)\"");
    sums_.emplace(result, made);
    return result;
  }
  Instruction* relu(const Instruction& i, Instruction* of, int uses) {
    auto found = sums_.find(of);
    if (found == sums_.end() || found->second.uses != uses) return nullptr;
    return call(i, found->second, "aten::_addmm_activation", "\"(%0, %1, %2)\"");
  }

  Rewriter& to_;
  std::unordered_map<const Instruction*, Sum> sums_;
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
