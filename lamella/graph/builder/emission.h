// Emission: one running call of a builder function. It adds instructions and records errors with
// the function's name and call site. Internal to lamella/graph/builder.
#pragma once
#include <span>
#include <string_view>

#include "lamella/graph/builder/attribute_list.h"
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// Throws an error that the builder records with the function's name and call site.
template <class... Parts>
[[noreturn]] LAMELLA_COLD void refuse(const Parts&... parts) {
  throw Error(str(parts...));
}
#define LAMELLA_EXPECT(condition, ...)                                                    \
  do {                                                                                    \
    if (LAMELLA_UNLIKELY(!(condition))) ::lamella::hlo::refuse("expected ", __VA_ARGS__); \
  } while (false)

inline void require_dimension(const Shape& shape, int64_t dimension, const char* name) {
  LAMELLA_EXPECT(dimension >= 0 && dimension < shape.rank(), "'", name, "' to name a dimension of ",
                 shape.to_string(false), ", got ", dimension);
}

class Emission {
 public:
  // `builder` may be NULL, which is an error.
  Emission(const char* function, Builder* builder, Where where);
  Emission(const Emission&) = delete;
  ~Emission();

  // Runs `work` unless the builder has an error already. An exception becomes the builder's error.
  template <class F>
  Op run(F&& work) {
    if (!builder_->first_error_.ok()) return failed();
    try {
      return work(*this);
    } catch (const std::exception& error) {
      return failed(error);
    }
  }

  Builder* builder() const { return builder_; }
  Where where() const { return where_; }
  const char* function() const { return function_; }
  // Arguments for nested builder functions: they report the call site of this one.
  Operand at(Op op) const { return {op, where_}; }
  Within within() const { return {builder_, where_}; }

  const Shape& shape(Op op) const { return *builder_->resolve(op)->shape; }
  // The shape of the op; throws if it is not an array. `name` is the argument's name for the error.
  const Shape& array(Op op, const char* name) const;
  AttributeList attributes() { return AttributeList(builder_->module()); }
  Computation* import(const BuiltComputation& computation, const char* name);
  // Adds an instruction. Its shape is inferred from its operands and attributes; `hint` is the
  // stated shape of opcodes that state one, and defaults to the first operand's shape.
  Op add(Opcode opcode, std::span<const Op> operands, AttributeList attributes, const Shape& hint);
  Op add(Opcode opcode, std::span<const Op> operands, AttributeList attributes);
  Op add(Opcode opcode, std::span<const Op> operands) {
    return add(opcode, operands, attributes());
  }
  Op add(Opcode opcode, std::initializer_list<Op> operands) {
    return add(opcode, Span<Op>(operands));
  }
  Op add(Opcode opcode, std::initializer_list<Op> operands, AttributeList attributes) {
    return add(opcode, Span<Op>(operands), std::move(attributes));
  }
  Op add(Opcode opcode, std::initializer_list<Op> operands, AttributeList attributes,
         const Shape& hint) {
    return add(opcode, Span<Op>(operands), std::move(attributes), hint);
  }
  Op add_constant(const Literal& literal);
  Op add_parameter(int64_t number, const Shape& shape, std::string_view name);

 private:
  Op failed();
  Op failed(const std::exception& error);

  const char* function_;
  Builder* builder_;
  Where where_;
  const Emission* outer_;
};

template <class F>
Op emit(const char* function, const Operand& op, F&& work) {
  return Emission(function, op.builder(), op.where).run(work);
}
template <class F>
Op emit(const char* function, const Within& within, F&& work) {
  return Emission(function, within.builder, within.where).run(work);
}
// Uses the builder of the first op of the list.
template <class F>
Op emit(const char* function, const Operands& ops, F&& work) {
  return Emission(function, ops.empty() ? nullptr : ops[0].builder(), ops.where).run(work);
}

}  // namespace lamella::hlo
