// Which opcode is of which family.
#include "lamella/graph/view/families.h"

namespace lamella::hlo {

Family family_of(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::Parameter:
      return Family::Parameter;
    case Opcode::Constant:
    case Opcode::Iota:
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
      return Family::Constant;
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::Copy:
    case Opcode::CopyDone:
    case Opcode::CopyStart:
    case Opcode::DynamicReshape:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Gather:
    case Opcode::GetDimensionSize:
    case Opcode::Pad:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Scatter:
    case Opcode::SetDimensionSize:
    case Opcode::Slice:
    case Opcode::Transpose:
      return Family::Movement;
    case Opcode::Map:
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Scan:
    case Opcode::SelectAndScatter:
    case Opcode::Sort:
    case Opcode::TopK:
    case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormTraining:
      return Family::Reduction;
    case Opcode::Cholesky:
    case Opcode::Convolution:
    case Opcode::Dot:
    case Opcode::Fft:
    case Opcode::RaggedDot:
    case Opcode::ScaledDot:
    case Opcode::TriangularSolve:
      return Family::Contraction;
    case Opcode::AddDependency:
    case Opcode::AfterAll:
    case Opcode::AsyncDone:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::Call:
    case Opcode::Conditional:
    case Opcode::Domain:
    case Opcode::Infeed:
    case Opcode::OptimizationBarrier:
    case Opcode::Outfeed:
    case Opcode::While:
      return Family::Control;
    case Opcode::Fusion:
      return Family::Fusion;
    case Opcode::CustomCall:
      return Family::CustomCall;
    case Opcode::AllGather:
    case Opcode::AllGatherDone:
    case Opcode::AllGatherStart:
    case Opcode::AllReduce:
    case Opcode::AllReduceDone:
    case Opcode::AllReduceStart:
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteDone:
    case Opcode::CollectivePermuteStart:
    case Opcode::CollectiveReduce:
    case Opcode::RaggedAllToAll:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::ReduceScatter:
    case Opcode::Send:
    case Opcode::SendDone:
      return Family::Collective;
    case Opcode::GetTupleElement:
    case Opcode::Tuple:
      return Family::Tuple;
    default:
      return Family::Elementwise;
  }
}

const FamilyLook& look_of(Family family) {
  static constexpr FamilyLook kLooks[kFamilyCount] = {
      {"parameter", "#fdf1d8", "#a06a10"},   {"constant", "#eeeeee", "#777777"},
      {"elementwise", "#e4ecf7", "#33598c"}, {"movement", "#e3f3f1", "#2a7a70"},
      {"reduction", "#efe6f6", "#6d3f91"},   {"contraction", "#fbe3e0", "#a8362a"},
      {"control", "#e3f1e3", "#3d7a3d"},     {"fusion", "#fff7e6", "#8a6d3b"},
      {"custom call", "#fde4f1", "#9c2c6b"}, {"collective", "#e6e9ff", "#4a4fb0"},
      {"tuple", "#f5f5f0", "#8a8a7a"},
  };
  return kLooks[static_cast<size_t>(family)];
}

std::string short_shape(const Shape& shape, size_t letters) {
  std::string text = shape.to_string(false);
  return text.size() <= letters ? text : text.substr(0, letters - 3) + "...";
}

}  // namespace lamella::hlo
