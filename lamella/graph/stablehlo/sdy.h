// Shardy: the dialect that programs for several devices state their shardings in. Internal to
// lamella/graph/stablehlo.
//
// Note [Shardy]
//   Shardings name axes of a mesh; as instructions have them they are HLO's, which number devices.
//   A manual_computation becomes the custom call of Note [Manual regions]. Types of this dialect's
//   operations are MLIR's own, so casts stand around them, which are left out.
#pragma once
#include "lamella/graph/hlo/sharding.h"
#include "lamella/graph/stablehlo/bytecode_pool.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {

struct SdyOperation {
  std::string_view name;        // "sdy.reshard"
  std::string_view attributes;  // as in operations.def
  void (*rule)(Translation&, const Operation&);
};
std::span<const SdyOperation> sdy_operations();

// The sharding of an array that a TensorShardingAttr states. Axes other than those of `only`, if
// that is not null, do not count.
Sharding sharding_of(const Attribute& stated, const Mesh& mesh,
                     const std::vector<std::string_view>* only = nullptr);

}  // namespace lamella::hlo::stablehlo
