// Attributes of typed custom calls: parsed from backend_config into the structs that handlers take.
#pragma once
#include <memory>
#include <memory_resource>
#include <string_view>

#include "lamella/graph/custom_call/ffi/abi.h"
#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo::ffi {

constexpr DataType data_type(ElementType type) { return static_cast<DataType>(type); }

// Note [Attributes in text]
//   The backend_config of a typed call is a dictionary in MLIR's notation:
//   {mode = 1 : i64, name = "x"}. The values are converted as follows:
//   - true, false, and a name alone: a scalar PRED; 3 : i32, 76 : ui8, 1.5 : f32, 0x7FC00000 : f32
//     (the bits of a float): scalars of that type; S64 or F64 if no type is given;
//   - "text": a string; {...}: a dictionary;
//   - array<i64: 1, 2>, dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, dense<0> : tensor<3xi64>,
//     dense<"0x0100..."> : tensor<200xi8>, and lists of scalars of one type [1 : i32, 2 : i32]:
//     arrays, multi-dimensional ones flattened in row-major order.
//   Types are i1 to i64, si8 to si64, ui8 to ui64, index (S64), the floats, complex<f32> and
//   complex<f64>; i1 is PRED. Types, symbols and mixed lists are errors, as calls cannot pass them.
class AttributeDictionary {
 public:
  // No attributes.
  AttributeDictionary() : AttributeDictionary(std::string_view()) {}
  // Parses a dictionary; an empty text is an empty dictionary. Throws an Error that begins with
  // "backend_config: line 1, column 7: ".
  explicit AttributeDictionary(std::string_view text);

  // The attributes, sorted by name. They live as long as this object, even if it is moved.
  const Attrs& attrs() const { return *attrs_; }

 private:
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_;
  const Attrs* attrs_ = nullptr;
};

}  // namespace lamella::hlo::ffi
