// The builder's functions for Python, and the conversion of arguments to their C++ types.
//
// Note [Functions from a table]
//   A row names a C++ function, and its parameters by their Python names; '?' marks optional ones,
//   which have a default. From the function's type a template makes the conversion of each
//   argument, the call, and the annotation in the stub. A parameter of type Within is the builder;
//   it may be left out if there is an op among the arguments.
#pragma once
#include <array>
#include <optional>
#include <tuple>

#include "lamella/graph/builder/functions.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {

using BuilderPointer = std::shared_ptr<hlo::Builder>;
struct BuilderHandle {
  BuilderPointer builder;
  int64_t next_parameter = 0;
};
struct OpHandle {
  BuilderPointer builder;
  hlo::Op op;
};
extern PyTypeObject* builder_type;
extern PyTypeObject* op_type;

// The source location of the innermost running Python code outside of the package.
hlo::Where python_place();

// State that the arguments of one call share.
struct Arguments {
  const char* function;
  BuilderPointer builder;
  hlo::Where where;
  // Python numbers become scalars of this type.
  hlo::ElementType number_type = hlo::ElementType::Invalid;
};
struct Argument {
  PyObject* object;  // NULL: left out
  const char* name;
  Arguments& all;
};

// Throws a TypeError: "pad: expected 'padding_config' to be ..., got ...".
[[noreturn]] void wrong_argument(const Argument& argument, const char* expected);
int64_t integer_from(const Argument& argument, PyObject* object);
std::vector<int64_t> integers_from(const Argument& argument, PyObject* object);
hlo::Op op_from(const Argument& argument, PyObject* object);
std::vector<hlo::Op> ops_from(const Argument& argument);
std::vector<std::pair<int64_t, int64_t>> pairs_from(const Argument& argument);
hlo::ElementType element_from(const Argument& argument);
// The literal of an argument of `constant` in lamella/hlo/_arrays.py; `type` Invalid: its own type.
hlo::Literal literal_from(PyObject* object, hlo::ElementType type);
// Field `name` of an object or a dictionary; empty if there is none.
Ref field_of(PyObject* object, const char* name);
// The number of one of the texts, regardless of case, or the number itself.
int choice_from(const Argument& argument, std::span<const char* const> texts, int first);

// From<T>: `Stored` holds a converted argument, `read` makes it, `pass` converts it to T.
template <class T>
struct From;

#define LAMELLA_HLO_FROM(type, stored, text)         \
  template <>                                        \
  struct From<type> {                                \
    using Stored = stored;                           \
    static constexpr const char* annotation = text;  \
    static Stored read(const Argument& a);           \
    static type pass(Stored& value, Arguments& all); \
  };
using OptionalPrecision = std::optional<hlo::PrecisionConfig>;
using OptionalElement = std::optional<hlo::PrimitiveType>;
using OptionalFlag = std::optional<bool>;
using OptionalFlags = std::optional<std::vector<bool>>;
using OptionalInteger = std::optional<int64_t>;
using OptionalText = std::optional<std::string_view>;
using OptionalLiteral = std::optional<hlo::Literal>;
using Pair = std::pair<int64_t, int64_t>;
using Pairs = std::vector<Pair>;
struct Nothing {};
struct Branches {
  std::vector<hlo::BuiltComputation> computations;
  std::vector<const hlo::BuiltComputation*> pointers;
};
LAMELLA_HLO_FROM(hlo::Within, Nothing, "Builder")
LAMELLA_HLO_FROM(hlo::Operand, hlo::Op, "OpLike")
LAMELLA_HLO_FROM(hlo::Op, hlo::Op, "OpLike")
LAMELLA_HLO_FROM(hlo::Operands, std::vector<hlo::Op>, "Sequence[OpLike]")
LAMELLA_HLO_FROM(hlo::Span<hlo::Op>, std::vector<hlo::Op>, "Sequence[OpLike]")
LAMELLA_HLO_FROM(hlo::Span<int64_t>, std::vector<int64_t>, "Sequence[int]")
LAMELLA_HLO_FROM(hlo::Span<Pair>, Pairs, "Sequence[tuple[int, int]]")
LAMELLA_HLO_FROM(int64_t, int64_t, "int")
LAMELLA_HLO_FROM(int, int, "int")
LAMELLA_HLO_FROM(bool, bool, "bool")
LAMELLA_HLO_FROM(float, float, "float")
LAMELLA_HLO_FROM(const std::string&, std::string, "str")
LAMELLA_HLO_FROM(OptionalText, std::string, "str | None")
LAMELLA_HLO_FROM(OptionalInteger, OptionalInteger, "int | None")
LAMELLA_HLO_FROM(OptionalFlag, OptionalFlag, "bool | None")
LAMELLA_HLO_FROM(OptionalFlags, OptionalFlags, "Sequence[bool] | None")
LAMELLA_HLO_FROM(const std::vector<bool>&, std::vector<bool>, "Sequence[bool]")
LAMELLA_HLO_FROM(hlo::PrimitiveType, hlo::PrimitiveType, "ElementLike")
LAMELLA_HLO_FROM(OptionalElement, OptionalElement, "ElementLike | None")
LAMELLA_HLO_FROM(const hlo::Shape&, hlo::Shape, "ShapeLike")
LAMELLA_HLO_FROM(hlo::Span<hlo::Shape>, std::vector<hlo::Shape>, "Sequence[ShapeLike]")
LAMELLA_HLO_FROM(const hlo::BuiltComputation&, hlo::BuiltComputation, "Module")
LAMELLA_HLO_FROM(hlo::Span<const hlo::BuiltComputation*>, Branches, "Sequence[Module]")
LAMELLA_HLO_FROM(const hlo::Literal*, OptionalLiteral, "Any")
LAMELLA_HLO_FROM(const hlo::PaddingConfig&, hlo::PaddingConfig, "Sequence[tuple[int, int, int]]")
LAMELLA_HLO_FROM(const hlo::PrecisionConfig*, OptionalPrecision, "Sequence[str] | None")
LAMELLA_HLO_FROM(const hlo::DotDimensionNumbers&, hlo::DotDimensionNumbers, "DotDimensionNumbers")
LAMELLA_HLO_FROM(const hlo::GatherDimensionNumbers&, hlo::GatherDimensionNumbers,
                 "GatherDimensionNumbers")
LAMELLA_HLO_FROM(const hlo::ScatterDimensionNumbers&, hlo::ScatterDimensionNumbers,
                 "ScatterDimensionNumbers")
LAMELLA_HLO_FROM(const hlo::ConvolutionDimensionNumbers&, hlo::ConvolutionDimensionNumbers,
                 "ConvolutionDimensionNumbers")
LAMELLA_HLO_FROM(hlo::Span<hlo::OutputOperandAliasing>, std::vector<hlo::OutputOperandAliasing>,
                 "Sequence[tuple[Sequence[int], tuple[int, Sequence[int]]]]")
LAMELLA_HLO_FROM(hlo::Span<hlo::ReplicaGroup>, std::vector<hlo::ReplicaGroup>,
                 "Sequence[Sequence[int]]")
LAMELLA_HLO_FROM(hlo::ComparisonDirection, hlo::ComparisonDirection, "str")
LAMELLA_HLO_FROM(hlo::Comparison::Type, hlo::Comparison::Type, "str")
LAMELLA_HLO_FROM(hlo::Padding, hlo::Padding, "str")
LAMELLA_HLO_FROM(hlo::FftType, hlo::FftType, "str")
LAMELLA_HLO_FROM(hlo::RandomAlgorithm, hlo::RandomAlgorithm, "str")
LAMELLA_HLO_FROM(hlo::TriangularSolveOptions::Transpose, hlo::TriangularSolveOptions::Transpose,
                 "str")
LAMELLA_HLO_FROM(hlo::CustomCallSchedule, hlo::CustomCallSchedule, "str | int")
LAMELLA_HLO_FROM(hlo::CustomCallApiVersion, hlo::CustomCallApiVersion, "str | int")
#undef LAMELLA_HLO_FROM

// ---- Rows of the table -------------------------------------------------------------------------

struct Row {
  const char* name;
  const char* parameters;  // "lhs, rhs, broadcast_dimensions?"
  const char* doc;
  hlo::Op (*call)(Arguments& all, PyObject* const* objects, const char* const* names);
  std::vector<const char*> (*annotations)();
};

template <class F>
struct Caller;
template <class... A>
struct Caller<hlo::Op (*)(A...)> {
  using Function = hlo::Op (*)(A...);
  template <size_t... I>
  static hlo::Op call(Function function, Arguments& all, PyObject* const* objects,
                      const char* const* names, std::index_sequence<I...>) {
    // Braces evaluate in order, so that the first mistake is the one that is reported.
    std::tuple<typename From<A>::Stored...> stored{
        From<A>::read(Argument{objects[I], names[I], all})...};
    return function(From<A>::pass(std::get<I>(stored), all)...);
  }
  template <Function function>
  static constexpr Row row(const char* name, const char* parameters, const char* doc) {
    return {name, parameters, doc,
            [](Arguments& all, PyObject* const* objects, const char* const* names) {
              return call(function, all, objects, names, std::index_sequence_for<A...>());
            },
            [] { return std::vector<const char*>{From<A>::annotation...}; }};
  }
};
template <auto function>
constexpr Row row(const char* name, const char* parameters, const char* doc) {
  return Caller<decltype(function)>::template row<function>(name, parameters, doc);
}

std::span<const Row> builder_rows();          // builder_functions.cpp
int add_builder(PyObject* module);            // builder.cpp
int add_builder_functions(PyObject* module);  // builder_call.cpp

}  // namespace lamella::python
