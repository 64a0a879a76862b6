// Builder functions for custom calls.
#include "lamella/graph/builder/calls.h"

#include "lamella/graph/builder/convolution_dimensions.h"
#include "lamella/graph/builder/emission.h"
#include "lamella/graph/hlo/attribute.h"

namespace lamella::hlo {
namespace {

const char* word(CustomCallSchedule schedule) {
  switch (schedule) {
    case SCHEDULE_NONE:
      return "SCHEDULE_NONE";
    case SCHEDULE_LATEST:
      return "SCHEDULE_LATEST";
    case SCHEDULE_EARLIEST:
      return "SCHEDULE_EARLIEST";
  }
  refuse("expected 'schedule' to be one of CustomCallSchedule, got ", static_cast<int>(schedule));
}
const char* word(CustomCallApiVersion version) {
  switch (version) {
    case API_VERSION_UNSPECIFIED:
      break;
    case API_VERSION_ORIGINAL:
      return "API_VERSION_ORIGINAL";
    case API_VERSION_STATUS_RETURNING:
      return "API_VERSION_STATUS_RETURNING";
    case API_VERSION_STATUS_RETURNING_UNIFIED:
      return "API_VERSION_STATUS_RETURNING_UNIFIED";
    case API_VERSION_TYPED_FFI:
      return "API_VERSION_TYPED_FFI";
  }
  refuse("expected 'api_version' to be a version from API_VERSION_ORIGINAL, got ",
         static_cast<int>(version));
}
bool all_have_layouts(const Shape& shape) {
  for (const Shape& element : shape.tuple_shapes()) {
    if (!all_have_layouts(element)) return false;
  }
  return !shape.is_array() || shape.has_layout();
}
// The attributes of a typed call are written unquoted, in braces; any other opaque text is quoted.
std::string config_text(const std::string& opaque, CustomCallApiVersion version) {
  return version == API_VERSION_TYPED_FFI && opaque.starts_with('{') ? opaque : quoted(opaque);
}

struct CallOptions {
  const std::string& opaque;
  bool has_side_effect;
  Span<OutputOperandAliasing> aliasing;
  const Literal* literal;
  CustomCallSchedule schedule;
  CustomCallApiVersion api_version;
};
Op custom_call(Emission& e, const std::string& target, Span<Op> operands, const Shape& shape,
               const Shape* operand_shapes, size_t operand_shape_count, const CallOptions& options,
               AttributeList list) {
  LAMELLA_EXPECT(!target.empty(), "'call_target_name' to be set, got an empty one");
  LAMELLA_EXPECT(target[0] != '$',
                 "'call_target_name' without '$' in front, which names of the "
                 "compiler's own have, got '",
                 target, "'");
  LAMELLA_EXPECT(shape.is_valid(), "'shape' to be set, got ", shape.to_string(false));
  list.text(AttributeKey::CustomCallTarget, target);
  if (options.has_side_effect) list.flag(AttributeKey::CustomCallHasSideEffect, true);
  if (operand_shapes != nullptr) {
    LAMELLA_EXPECT(all_have_layouts(shape), "'shape_with_layout' to have layouts, got ",
                   shape.to_string());
    LAMELLA_EXPECT(operand_shape_count == operands.size(), "'operand_shapes_with_layout' for ",
                   operands.size(), " operands, got ", operand_shape_count);
    for (size_t n = 0; n < operand_shape_count; ++n) {
      LAMELLA_EXPECT(all_have_layouts(operand_shapes[n]),
                     "'operand_shapes_with_layout' to have layouts, got ",
                     operand_shapes[n].to_string(), " for operand ", n);
    }
    list.shapes(AttributeKey::OperandLayoutConstraints, {operand_shapes, operand_shape_count});
  }
  if (!options.aliasing.empty()) {
    std::vector<OperandAlias> aliases;
    for (const auto& [output, operand] : options.aliasing) {
      aliases.push_back({output, operand.first, operand.second});
    }
    list.aliases(std::move(aliases));
  }
  if (options.literal != nullptr) {
    list.text(AttributeKey::Literal,
              str(options.literal->shape().to_string(), " ", options.literal->to_string()));
  }
  if (options.schedule != SCHEDULE_NONE) {
    list.text(AttributeKey::Schedule, word(options.schedule));
  }
  const char* version = word(options.api_version);
  if (options.api_version != API_VERSION_ORIGINAL) list.text(AttributeKey::ApiVersion, version);
  if (!options.opaque.empty()) {
    list.text(AttributeKey::BackendConfig, config_text(options.opaque, options.api_version));
  }
  return e.add(Opcode::CustomCall, operands, std::move(list), shape);
}

}  // namespace

Op CustomCall(Within builder, const std::string& call_target_name, Span<Op> operands,
              const Shape& shape, const std::string& opaque, bool has_side_effect,
              Span<OutputOperandAliasing> output_operand_aliasing, const Literal* literal,
              CustomCallSchedule schedule, CustomCallApiVersion api_version) {
  return emit("CustomCall", builder, [&](Emission& e) {
    return custom_call(
        e, call_target_name, operands, shape, nullptr, 0,
        {opaque, has_side_effect, output_operand_aliasing, literal, schedule, api_version},
        e.attributes());
  });
}
Op CustomCallWithComputation(Within builder, const std::string& call_target_name, Span<Op> operands,
                             const BuiltComputation& computation, const Shape& shape,
                             const std::string& opaque, bool has_side_effect,
                             Span<OutputOperandAliasing> output_operand_aliasing,
                             const Literal* literal, CustomCallSchedule schedule,
                             CustomCallApiVersion api_version) {
  return emit("CustomCallWithComputation", builder, [&](Emission& e) {
    AttributeList list = e.attributes();
    std::vector<Computation*> called{e.import(computation, "computation")};
    list.computations(AttributeKey::CalledComputations, called);
    return custom_call(
        e, call_target_name, operands, shape, nullptr, 0,
        {opaque, has_side_effect, output_operand_aliasing, literal, schedule, api_version},
        std::move(list));
  });
}
Op CustomCallWithLayout(Within builder, const std::string& call_target_name, Span<Op> operands,
                        const Shape& shape_with_layout, Span<Shape> operand_shapes_with_layout,
                        const std::string& opaque, bool has_side_effect,
                        Span<OutputOperandAliasing> output_operand_aliasing, const Literal* literal,
                        CustomCallSchedule schedule, CustomCallApiVersion api_version) {
  return emit("CustomCallWithLayout", builder, [&](Emission& e) {
    static const Shape kNone;
    const Shape* shapes =
        operand_shapes_with_layout.empty() ? &kNone : operand_shapes_with_layout.data();
    return custom_call(
        e, call_target_name, operands, shape_with_layout, shapes, operand_shapes_with_layout.size(),
        {opaque, has_side_effect, output_operand_aliasing, literal, schedule, api_version},
        e.attributes());
  });
}
Op CustomCallWithConvDnums(Within builder, const std::string& call_target_name, Span<Op> operands,
                           const Shape& shape, Span<Shape> operand_shapes_with_layout,
                           const std::string& opaque, bool has_side_effect,
                           Span<OutputOperandAliasing> output_operand_aliasing,
                           const Literal* literal, Span<WindowDimension> window,
                           const ConvolutionDimensionNumbers& dnums, CustomCallSchedule schedule,
                           CustomCallApiVersion api_version) {
  return emit("CustomCallWithConvDnums", builder, [&](Emission& e) {
    AttributeList list = e.attributes();
    list.window(window);
    list.dim_labels(dimensions_of(dnums));
    const Shape* shapes =
        operand_shapes_with_layout.empty() ? nullptr : operand_shapes_with_layout.data();
    return custom_call(
        e, call_target_name, operands, shape, shapes, operand_shapes_with_layout.size(),
        {opaque, has_side_effect, output_operand_aliasing, literal, schedule, api_version},
        std::move(list));
  });
}

}  // namespace lamella::hlo
