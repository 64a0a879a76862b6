// Annotations: they are identities, because values are row-major and on one device.
#include "lamella/graph/custom_call/annotation.h"

#include <algorithm>
#include <array>

#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

constexpr std::array<std::string_view, 12> kSame = {"LayoutConstraint",
                                                    "MoveToDevice",
                                                    "MoveToHost",
                                                    "Pin",
                                                    "SPMDFullToShardShape",
                                                    "SPMDShardToFullShape",
                                                    "ShardBarrierFrom",
                                                    "ShardBarrierTo",
                                                    "Sharding",
                                                    "Unpin",
                                                    "annotate_device_placement",
                                                    "xla.sdy.FuncResultSharding"};
constexpr std::array<std::string_view, 2> kMemory = {"AllocateBuffer", "CreateBuffer"};

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Same final : public PreparedCall {
 public:
  explicit Same(const Shape* shape) : shape_(shape) {}
  Value run(std::span<Value> operands, RunContext&) override {
    if (!shape_->is_array()) return std::move(operands[0]);
    return Value::reshaped(std::move(operands[0]), shape_);
  }

 private:
  const Shape* shape_;
};
class Memory final : public PreparedCall {
 public:
  explicit Memory(const Shape* shape) : shape_(shape) {}
  Value run(std::span<Value>, RunContext&) override { return Value::zeros(shape_); }

 private:
  const Shape* shape_;
};

}  // namespace

bool is_annotation(const Instruction& i) {
  return is_one_of(kSame, i.text(AttributeKey::CustomCallTarget));
}

std::unique_ptr<PreparedCall> prepare_annotation(const Instruction& i) {
  std::string_view target = i.text(AttributeKey::CustomCallTarget);
  if (is_one_of(kMemory, target)) {
    LAMELLA_HLO_REQUIRE(i.operands.empty() && i.shape->is_array(), i, "expected '", target,
                        "' to have no operands and an array as its result, got ", i.operands.size(),
                        " operands and ", i.shape->to_string(false));
    return std::make_unique<Memory>(i.shape);
  }
  if (!is_one_of(kSame, target)) return nullptr;
  LAMELLA_HLO_REQUIRE(i.operands.size() == 1, i, "expected '", target,
                      "' to have one operand, got ", i.operands.size());
  LAMELLA_HLO_REQUIRE(i.shape->compatible(i.operand_shape(0)), i, "expected '", target,
                      "' to give its operand's shape ", i.operand_shape(0).to_string(false),
                      ", since a module runs as one partition, got ", i.shape->to_string(false));
  return std::make_unique<Same>(i.shape);
}

}  // namespace lamella::hlo
