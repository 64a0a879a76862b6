// Builder: makes a computation by one function call for each instruction (XLA's XlaBuilder).
//
// Note [Errors while building]
//   A function that is called with wrong arguments returns an invalid op, and the builder records
//   the first error with the name of the function and the location of the call. Functions on
//   invalid ops then do nothing, and Build() returns the error: "Build: Add at model.cc:12:
//   expected ...". An op without a builder has no place to record an error, so the function throws.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/program_shape.h"
#include "lamella/graph/builder/status.h"
#include "lamella/graph/builder/types.h"
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// A built computation: a module whose entry it is (XLA's XlaComputation). Copies share it.
class BuiltComputation {
 public:
  // A null computation.
  BuiltComputation() = default;
  explicit BuiltComputation(std::shared_ptr<const Module> module) : module_(std::move(module)) {}

  bool IsNull() const { return module_ == nullptr; }
  StatusOr<ProgramShape> GetProgramShape() const;
  std::string name() const { return module_ != nullptr ? std::string(module_->name) : ""; }
  const std::shared_ptr<const Module>& module() const { return module_; }
  // The HLO text; empty if this is null.
  std::string to_string() const;

 private:
  std::shared_ptr<const Module> module_;
};

class AttributeList;
class Emission;

class Builder {
 public:
  explicit Builder(std::string_view name);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder();

  // The newest live builder that this thread made, or NULL.
  static Builder* latest();

  const std::string& name() const { return name_; }

  // Finishes the computation; its result is `root`, or else the op that was made last. This resets
  // the builder and its error, and invalidates all ops made before.
  StatusOr<BuiltComputation> Build();
  StatusOr<BuiltComputation> Build(Op root);
  // Build() for a builder from CreateSubBuilder: an error is reported to the parent builder, and
  // the returned computation is null.
  BuiltComputation BuildAndNoteError();
  // A computation without parameters that computes `root`, built from the instructions that `root`
  // depends on. Fails if it depends on a parameter, random numbers or side effects. The builder is
  // unchanged.
  StatusOr<BuiltComputation> BuildConstantSubGraph(Op root);
  // True if BuildConstantSubGraph would succeed.
  StatusOr<bool> IsConstant(Op operand) const;

  std::unique_ptr<Builder> CreateSubBuilder(std::string_view name);

  StatusOr<Shape> GetShape(Op op) const;
  StatusOr<const Shape*> GetShapePtr(Op op) const;
  // The shape of the computation so far.
  StatusOr<ProgramShape> GetProgramShape() const;
  StatusOr<ProgramShape> GetProgramShape(Op root) const;
  // The instruction behind an op, until Build().
  StatusOr<const Instruction*> GetInstruction(Op op) const;

  // The first error, or success.
  Status first_error() const { return first_error_; }
  Status GetCurrentStatus() const { return first_error_; }
  // Records an error from outside the builder; returns an invalid op.
  Op ReportError(const Status& error);
  Op ReportErrorOrReturn(const StatusOr<Op>& op);
  template <class F>
    requires(std::is_invocable_r_v<StatusOr<Op>, F>)
  Op ReportErrorOrReturn(F&& make) {
    return ReportErrorOrReturn(StatusOr<Op>(make()));
  }
  // Makes wrong calls throw at once, instead of recording the error.
  void set_die_immediately_on_error(bool enabled) { die_immediately_on_error_ = enabled; }

  // Attaches the metadata to every instruction made after this call.
  void SetOpMetadata(OpMetadata metadata) { metadata_ = std::move(metadata); }
  // Attaches the metadata to the next instruction only.
  void SetOneShotOpMetadata(OpMetadata metadata) { one_shot_metadata_ = std::move(metadata); }
  void ClearOpMetadata() { metadata_.reset(); }
  OpMetadata SwapOpMetadata(OpMetadata metadata);
  void SetSharding(const OpSharding& sharding) { sharding_ = sharding; }
  void ClearSharding() { sharding_.reset(); }
  const std::optional<OpSharding>& sharding() const { return sharding_; }
  void SetFrontendAttributes(const FrontendAttributes& attributes) {
    frontend_attributes_ = attributes;
  }
  FrontendAttributes SwapFrontendAttributes(const FrontendAttributes& attributes);
  const FrontendAttributes& frontend_attributes() const { return frontend_attributes_; }
  void ClearFrontendAttributes() { frontend_attributes_ = {}; }
  // Changes an existing instruction.
  Status SetInstructionFrontendAttribute(Op op, std::string_view key, std::string_view value);
  Status SetInstructionSharding(Op op, const std::optional<OpSharding>& sharding);

  // Lets the result's element `output_index` use the memory of a parameter's element: may or must.
  enum class AliasKind { kMayAlias, kMustAlias };
  void SetUpAlias(const ShapeIndex& output_index, int64_t parameter_number,
                  const ShapeIndex& parameter_index, AliasKind kind = AliasKind::kMayAlias);
  // Lets any result use the memory of a parameter's element.
  void AddBufferDonor(int64_t param_number, const ShapeIndex& param_index);

 private:
  friend class Emission;

  void start();
  Op wrap(const Instruction* instruction);
  // The instruction of an op; throws an Error, without a source location, if the op is invalid.
  Instruction* resolve(Op op) const;
  Op add(Opcode opcode, std::span<const Op> operands, const Shape& hint, AttributeList& attributes,
         std::string_view name, const Literal* literal, int64_t parameter_number);
  Computation* import(const BuiltComputation& computation);
  void report(const Status& error);
  Module& module() { return *module_; }
  BuiltComputation finish(Instruction* root);

  std::string name_;
  Builder* parent_ = nullptr;
  std::unique_ptr<Module> module_;
  Computation* computation_ = nullptr;
  int64_t first_handle_ =
      0;  // of the first instruction; lower handles belong to computations built before
  int64_t next_id_ = 1;
  const Emission* emission_ = nullptr;  // the outermost builder function being executed
  Status first_error_;
  bool die_immediately_on_error_ = false;

  std::optional<OpMetadata> metadata_, one_shot_metadata_;
  std::optional<OpSharding> sharding_;
  FrontendAttributes frontend_attributes_;
  // Imported computations, by the module they were copied from, which held_ keeps alive.
  std::unordered_map<const Module*, Computation*> imported_;
  std::vector<std::shared_ptr<const Module>> held_;
};

// Sets the sharding of a builder for a scope, and restores the previous one at its end.
class ScopedSharding {
 public:
  ScopedSharding(Builder* builder, std::optional<OpSharding> sharding)
      : builder_(builder), before_(builder->sharding()) {
    set(sharding);
  }
  ScopedSharding(const ScopedSharding&) = delete;
  ~ScopedSharding() { set(before_); }

 private:
  void set(const std::optional<OpSharding>& sharding) {
    sharding ? builder_->SetSharding(*sharding) : builder_->ClearSharding();
  }
  Builder* builder_;
  std::optional<OpSharding> before_;
};
class ScopedMetadata {
 public:
  ScopedMetadata(Builder* builder, OpMetadata metadata)
      : builder_(builder), before_(builder->SwapOpMetadata(std::move(metadata))) {}
  ScopedMetadata(const ScopedMetadata&) = delete;
  ~ScopedMetadata() { builder_->SwapOpMetadata(before_); }

 private:
  Builder* builder_;
  OpMetadata before_;
};

}  // namespace lamella::hlo
