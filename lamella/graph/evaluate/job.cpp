// Collectives implemented by the operators of namespace dist. See Note [Programs of many devices]
// in job.h.
#include "lamella/graph/evaluate/job.h"

#include <charconv>

#include "lamella/api/functions.h"
#include "lamella/dispatch/dispatcher.h"
#include "lamella/graph/custom_call/operator_tensors.h"
#include "lamella/graph/hlo/sharding.h"
#include "lamella/graph/runtime/tensor_value.h"

namespace lamella::hlo {
namespace {

template <class Signature, class... A>
auto call(const char* name, const A&... arguments) {
  return Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>().call(arguments...);
}
Tensor all_to_all(const Tensor& rows, OptionalIntArrayRef send, OptionalIntArrayRef receive,
                  int64_t group) {
  return call<Tensor(const Tensor&, OptionalIntArrayRef, OptionalIntArrayRef, int64_t)>(
      "dist::all_to_all", rows, send, receive, group);
}
int64_t size_of(int64_t group) { return call<int64_t(int64_t)>("dist::size", group); }

int64_t header_number(const Module& module, std::string_view key) {
  for (const auto& [name, value] : module.attributes) {
    int64_t number = 1;
    if (name == key) std::from_chars(value.data(), value.data() + value.size(), number);
    if (name == key) return number;
  }
  return 1;
}

// The handle of the process group that contains this rank; 0 is the group of all ranks.
int64_t group_of(const Instruction& i, const Job& job) {
  std::string_view text = i.text(AttributeKey::ReplicaGroups);
  const std::vector<std::vector<int64_t>> groups = device_groups(text);
  // A single group with one replica, which stands for all partitions, means all devices.
  bool all = groups.empty() || (groups.size() == 1 && groups[0].size() <= 1);
  if (all) return 0;
  for (const std::vector<int64_t>& group : groups) {
    for (int64_t device : group) {
      if (device != job.rank) continue;
      return call<int64_t(IntArrayRef)>("dist::new_group", IntArrayRef(group));
    }
  }
  LAMELLA_HLO_REQUIRE(false, i, "expected replica_groups to name device ", job.rank, ", got ",
                      text);
  return 0;
}

std::string_view reduction_of(const Instruction& i) {
  const Computation* computation = i.computation(AttributeKey::ToApply);
  const Instruction* root = computation == nullptr ? nullptr : computation->root;
  if (root != nullptr && computation->instructions.size() == 3) {
    switch (root->opcode) {
      case Opcode::Add:
        return "sum";
      case Opcode::Multiply:
        return "product";
      case Opcode::Minimum:
        return "min";
      case Opcode::Maximum:
        return "max";
      case Opcode::And:
        if (root->shape->element_type() == ElementType::PRED) return "min";
        break;
      case Opcode::Or:
        if (root->shape->element_type() == ElementType::PRED) return "max";
        break;
      default:
        break;
    }
  }
  LAMELLA_HLO_REQUIRE(false, i,
                      "expected to_apply to be one addition, multiplication, minimum or maximum");
  return {};
}

// The dimension along which arrays are concatenated or split.
int64_t dimension_of(const Instruction& i) {
  std::span<const int64_t> dimensions = i.integers(AttributeKey::Dimensions);
  return dimensions.empty() ? 0 : dimensions[0];
}

Tensor permuted(const Instruction& i, const Job& job, const Tensor& operand) {
  std::vector<int64_t> pairs = numbers_of(i.text(AttributeKey::SourceTargetPairs));
  auto ranks = static_cast<size_t>(size_of(0));
  std::vector<int64_t> send(ranks), receive(ranks);
  int64_t copies = 0;
  bool gets = false;
  for (size_t n = 0; n + 1 < pairs.size(); n += 2) {
    LAMELLA_HLO_REQUIRE(pairs[n] >= 0 && pairs[n + 1] >= 0 &&
                            pairs[n] < static_cast<int64_t>(ranks) &&
                            pairs[n + 1] < static_cast<int64_t>(ranks),
                        i, "expected source_target_pairs to name devices below ", ranks, ", got ",
                        pairs[n], " and ", pairs[n + 1]);
    if (pairs[n] == job.rank) copies += ++send[static_cast<size_t>(pairs[n + 1])];
    if (pairs[n + 1] != job.rank) continue;
    receive[static_cast<size_t>(pairs[n])] = 1;
    gets = true;
  }
  Tensor row = operand.reshape({1, operand.numel()});
  Tensor rows = row.expand({copies, operand.numel()});
  Tensor got = all_to_all(rows, send, receive, 0);
  return gets ? got.reshape(operand.sizes()) : lamella::zeros_like(operand);
}

Tensor one(const Instruction& i, const Job& job, const Tensor& operand) {
  using AllReduce = Tensor(const Tensor&, std::string_view, int64_t, bool);
  using AllGather = Tensor(const Tensor&, OptionalIntArrayRef, int64_t);
  using ReduceScatter = Tensor(const Tensor&, std::string_view, OptionalIntArrayRef, int64_t, bool);
  using Broadcast = Tensor(const Tensor&, int64_t, int64_t);
  switch (i.opcode) {
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
      return call<AllReduce>("dist::all_reduce", operand, reduction_of(i), group_of(i, job), false);
    case Opcode::AllGather:
    case Opcode::AllGatherStart: {
      int64_t d = dimension_of(i);
      return call<AllGather>("dist::all_gather", operand.transpose(0, d),
                             OptionalIntArrayRef(std::nullopt), group_of(i, job))
          .transpose(0, d);
    }
    case Opcode::ReduceScatter: {
      int64_t d = dimension_of(i);
      return call<ReduceScatter>("dist::reduce_scatter", operand.transpose(0, d), reduction_of(i),
                                 OptionalIntArrayRef(std::nullopt), group_of(i, job), false)
          .transpose(0, d);
    }
    case Opcode::AllToAll: {
      int64_t d = dimension_of(i);
      return all_to_all(operand.transpose(0, d), std::nullopt, std::nullopt, group_of(i, job))
          .transpose(0, d);
    }
    case Opcode::CollectiveBroadcast:
      return call<Broadcast>("dist::broadcast", operand, int64_t{0}, group_of(i, job));
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart:
      return permuted(i, job, operand);
    default:
      LAMELLA_HLO_REQUIRE(false, i, "expected a collective that runs on the ranks of a job");
      return {};
  }
}

Value value_like(const Tensor& tensor, const Shape* shape) {
  return value_of(tensor.contiguous(), shape);
}

}  // namespace

std::optional<Job> job_of(const Instruction& instruction) {
  const Module& module = *instruction.parent->parent;
  int64_t partitions = header_number(module, "num_partitions");
  int64_t devices = partitions * header_number(module, "replica_count");
  if (devices == 1) return std::nullopt;
  auto begun = Dispatcher::singleton().findSchema({"dist::is_initialized", ""});
  if (!begun || !begun->typed<bool()>().call()) return std::nullopt;
  LAMELLA_HLO_REQUIRE(size_of(0) == devices, instruction, "expected a job of ", devices,
                      " ranks, one for each device of the module, got ", size_of(0));
  return Job{call<int64_t(int64_t)>("dist::rank", int64_t{0}), partitions};
}

Value evaluate_on_job(Step& step, const Job& job, const Shape* shape) {
  const Instruction& i = step.instruction;
  auto tensor = [&](size_t n) {
    Tensor operand(tensor_of(step.operands[n]));
    if (i.opcode != Opcode::AllReduce && i.opcode != Opcode::AllReduceStart) return operand;
    // A sum may have another type than its operand.
    const Shape& part = shape->is_tuple() ? shape->tuple_shapes()[n] : *shape;
    return operand.to(tensor_type_of(part.element_type()));
  };
  if (!shape->is_tuple()) return value_like(one(i, job, tensor(0)), shape);
  std::vector<Value> parts;
  if (i.opcode == Opcode::AllToAll) {  // operand n goes to rank n of the group
    std::vector<Tensor> operands;
    for (size_t n = 0; n < step.operands.size(); ++n) operands.push_back(tensor(n));
    Tensor got = all_to_all(lamella::stack(operands), std::nullopt, std::nullopt, group_of(i, job));
    for (size_t n = 0; n < operands.size(); ++n) {
      parts.push_back(
          value_like(got.select(0, static_cast<int64_t>(n)), &shape->tuple_shapes()[n]));
    }
  } else {
    for (size_t n = 0; n < step.operands.size(); ++n) {
      parts.push_back(value_like(one(i, job, tensor(n)), &shape->tuple_shapes()[n]));
    }
  }
  return Value::tuple(shape, parts);
}

}  // namespace lamella::hlo
