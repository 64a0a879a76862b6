// Builder functions for custom calls, which run code outside HLO. Source: XLA's custom-call guide.
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// (output index, (operand number, operand index)): that element of the result aliases that element
// of the operand.
using OutputOperandAliasing = std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>;

// Calls the target with this name, which is looked up when the module is compiled. `shape` is the
// shape of the result; operands and result have the layouts of their shapes. `opaque` is passed to
// the target. A call with a side effect is never removed, repeated or reordered with another one.
// `literal` is attached to the call for compilers that know the target.
Op CustomCall(Within builder, const std::string& call_target_name, Span<Op> operands,
              const Shape& shape, const std::string& opaque = "", bool has_side_effect = false,
              Span<OutputOperandAliasing> output_operand_aliasing = {},
              const Literal* literal = nullptr, CustomCallSchedule schedule = SCHEDULE_NONE,
              CustomCallApiVersion api_version = API_VERSION_ORIGINAL);
// CustomCall with a computation that the target may run.
Op CustomCallWithComputation(Within builder, const std::string& call_target_name, Span<Op> operands,
                             const BuiltComputation& computation, const Shape& shape,
                             const std::string& opaque = "", bool has_side_effect = false,
                             Span<OutputOperandAliasing> output_operand_aliasing = {},
                             const Literal* literal = nullptr,
                             CustomCallSchedule schedule = SCHEDULE_NONE,
                             CustomCallApiVersion api_version = API_VERSION_ORIGINAL);
// CustomCall that passes operands in the given layouts. All shapes, including the result's, must
// have a layout.
Op CustomCallWithLayout(Within builder, const std::string& call_target_name, Span<Op> operands,
                        const Shape& shape_with_layout, Span<Shape> operand_shapes_with_layout,
                        const std::string& opaque = "", bool has_side_effect = false,
                        Span<OutputOperandAliasing> output_operand_aliasing = {},
                        const Literal* literal = nullptr,
                        CustomCallSchedule schedule = SCHEDULE_NONE,
                        CustomCallApiVersion api_version = API_VERSION_ORIGINAL);
// CustomCall for a convolution, with its window and dimension numbers.
Op CustomCallWithConvDnums(Within builder, const std::string& call_target_name, Span<Op> operands,
                           const Shape& shape, Span<Shape> operand_shapes_with_layout,
                           const std::string& opaque, bool has_side_effect,
                           Span<OutputOperandAliasing> output_operand_aliasing,
                           const Literal* literal, Span<WindowDimension> window,
                           const ConvolutionDimensionNumbers& dnums,
                           CustomCallSchedule schedule = SCHEDULE_NONE,
                           CustomCallApiVersion api_version = API_VERSION_ORIGINAL);

}  // namespace lamella::hlo
