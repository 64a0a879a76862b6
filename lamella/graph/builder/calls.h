// Custom calls: functions of the builder for code that HLO does not know. Source: XLA's custom-call
// guide.
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// Which part of the result lies in which part of which operand.
using OutputOperandAliasing = std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>;

// Calls the target with this name, which is looked up when the module is compiled. The result has
// the shape given here; operands and result lie as their layouts say. `opaque` is handed to the
// target. A call with a side effect is never left out, repeated or moved past another one.
// `literal` goes with the call, for compilers that know the target.
Op CustomCall(Within builder, const std::string& call_target_name, Span<Op> operands,
              const Shape& shape, const std::string& opaque = "", bool has_side_effect = false,
              Span<OutputOperandAliasing> output_operand_aliasing = {},
              const Literal* literal = nullptr, CustomCallSchedule schedule = SCHEDULE_NONE,
              CustomCallApiVersion api_version = API_VERSION_ORIGINAL);
// With computations that the target may run.
Op CustomCallWithComputation(Within builder, const std::string& call_target_name, Span<Op> operands,
                             const BuiltComputation& computation, const Shape& shape,
                             const std::string& opaque = "", bool has_side_effect = false,
                             Span<OutputOperandAliasing> output_operand_aliasing = {},
                             const Literal* literal = nullptr,
                             CustomCallSchedule schedule = SCHEDULE_NONE,
                             CustomCallApiVersion api_version = API_VERSION_ORIGINAL);
// Operands are handed over in these layouts. All shapes, the result's too, must have one.
Op CustomCallWithLayout(Within builder, const std::string& call_target_name, Span<Op> operands,
                        const Shape& shape_with_layout, Span<Shape> operand_shapes_with_layout,
                        const std::string& opaque = "", bool has_side_effect = false,
                        Span<OutputOperandAliasing> output_operand_aliasing = {},
                        const Literal* literal = nullptr,
                        CustomCallSchedule schedule = SCHEDULE_NONE,
                        CustomCallApiVersion api_version = API_VERSION_ORIGINAL);
// A convolution that the target does, with its window and numbers of dimensions.
Op CustomCallWithConvDnums(Within builder, const std::string& call_target_name, Span<Op> operands,
                           const Shape& shape, Span<Shape> operand_shapes_with_layout,
                           const std::string& opaque, bool has_side_effect,
                           Span<OutputOperandAliasing> output_operand_aliasing,
                           const Literal* literal, Span<WindowDimension> window,
                           const ConvolutionDimensionNumbers& dnums,
                           CustomCallSchedule schedule = SCHEDULE_NONE,
                           CustomCallApiVersion api_version = API_VERSION_ORIGINAL);

}  // namespace lamella::hlo
