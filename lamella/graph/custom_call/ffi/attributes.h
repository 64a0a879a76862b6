// Attributes of typed custom calls: read from backend_config, laid out as handlers take them.
#pragma once
#include <memory>
#include <memory_resource>
#include <string_view>

#include "lamella/graph/custom_call/ffi/abi.h"
#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo::ffi {

constexpr DataType data_type(ElementType type) { return static_cast<DataType>(type); }

// Note [Attributes in text]
//   Typed calls carry a dictionary as MLIR prints attributes: {mode = 1 : i64, name = "x"}. What
//   each form becomes:
//   - true, false, and a name alone: a scalar PRED; 3 : i32, 76 : ui8, 1.5 : f32, 0x7FC00000 : f32
//     (the bits of a float): scalars of that type; without a type S64 and F64;
//   - "text": a string; {...}: a dictionary;
//   - array<i64: 1, 2>, dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, dense<0> : tensor<3xi64>,
//     dense<"0x0100..."> : tensor<200xi8>, and lists of scalars of one type [1 : i32, 2 : i32]:
//     arrays, multi-dimensional ones flattened in row-major order.
//   Types are i1 to i64, si8 to si64, ui8 to ui64, index (S64), the floats, complex<f32> and
//   complex<f64>; i1 is PRED. Types, symbols and mixed lists have no form in a call: an error.
class AttributeDictionary {
 public:
  // No attributes.
  AttributeDictionary() : AttributeDictionary(std::string_view()) {}
  // Reads a dictionary; an empty text is an empty one. Throws an Error that begins with
  // "backend_config: line 1, column 7: ".
  explicit AttributeDictionary(std::string_view text);

  // Sorted by name. Lives as long as this object, wherever that is moved.
  const Attrs& attrs() const { return *attrs_; }

 private:
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_;
  const Attrs* attrs_ = nullptr;
};

}  // namespace lamella::hlo::ffi
