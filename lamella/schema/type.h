// SchemaType: the type of one operator argument or return, as the signature language spells it.
// A SchemaType is one pointer to an interned, immutable node: copying and comparing are free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/macros.h"

namespace lamella {

enum class TypeKind : std::uint8_t {
  kTensor,
  kInt,  // int, SymInt and DeviceIndex: all are 64-bit integers at run time
  kFloat,
  kBool,
  kComplex,
  kStr,
  kScalar,
  kGenerator,
  kScalarType,
  kLayout,
  kDevice,
  kMemoryFormat,
  kStorage,
  kStream,
  kQScheme,
  kDimname,
  kCapsule,
  kPyObject,
  kAny,
  kAnyEnum,
  kAnyClass,
  kNone,
  kTypeVar,      // t, t1, tVal: stands for any type, the same within one signature
  kCustomClass,  // __torch__.torch.classes.ns.Name
  kOptional,
  kList,
  kDict,
  kTuple,
  kFuture,
  kAwait,
  kRRef,
};

namespace detail {
struct TypeNode;
}

class LAMELLA_PRIVATE_API SchemaType {
 public:
  // Any.
  SchemaType();

  // A type without parameters. `kind` must come before kTypeVar.
  static SchemaType atom(TypeKind kind);
  // The atom that a signature spells `word` (Tensor, int, SymInt, ...), if there is one.
  static std::optional<SchemaType> from_word(std::string_view word);
  static SchemaType sym_int();
  static SchemaType type_var(std::string_view name);
  // `name` is the full dotted name, __torch__ included.
  static SchemaType custom_class(std::string_view name);
  static SchemaType optional_of(SchemaType element);
  static SchemaType list_of(SchemaType element, std::optional<int> fixed_size = std::nullopt);
  static SchemaType dict_of(SchemaType key, SchemaType value);
  static SchemaType tuple_of(std::span<const SchemaType> elements);
  // kFuture, kAwait or kRRef around `element`.
  static SchemaType wrapper_of(TypeKind kind, SchemaType element);

  TypeKind kind() const;
  bool is_optional() const { return kind() == TypeKind::kOptional; }
  bool is_list() const { return kind() == TypeKind::kList; }
  bool is_tensor() const { return kind() == TypeKind::kTensor; }
  // True for Tensor, Tensor?, Tensor[], Tensor?[] and so on: a Tensor without its `?` and `[]`.
  bool holds_tensor() const { return base().is_tensor(); }
  // SymInt, or a list or optional of it.
  bool is_symbolic() const;

  // The element type of an optional, list or wrapper; the value type of a Dict. Any for other
  // kinds.
  SchemaType element() const;
  // The members of a tuple; key and value of a Dict; else the one element, if any.
  std::span<const SchemaType> elements() const;
  // N of `int[N]`.
  std::optional<int> fixed_size() const;
  // The type with one `?` taken off, if it has one.
  SchemaType without_optional() const { return is_optional() ? element() : *this; }
  // The type with every `?` and `[]` taken off.
  SchemaType base() const;
  // The atom's, type variable's or class's name as spelled; empty for other kinds.
  std::string_view name() const;

  // The type as a signature spells it. The text lives as long as the program.
  const std::string& str() const;

  // The same type. SymInt equals int; int[2] differs from int[].
  friend bool operator==(SchemaType a, SchemaType b);

 private:
  explicit SchemaType(const detail::TypeNode* node) : node_(node) {}
  friend struct detail::TypeNode;

  const detail::TypeNode* node_;
};

// Every word that names a type without parameters, for diagnostics.
std::vector<std::string_view> type_words();

}  // namespace lamella
