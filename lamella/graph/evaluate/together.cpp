// Collectives and manual regions on threads: each result is made of the operands of all.
#include "lamella/graph/evaluate/together.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "lamella/api/functions.h"
#include "lamella/graph/custom_call/operator_tensors.h"
#include "lamella/graph/evaluate/scalar_call.h"
#include "lamella/graph/evaluate/strided.h"

namespace lamella::hlo {
namespace {

int64_t dimension_of(const Instruction& i) {
  std::span<const int64_t> dimensions = i.integers(AttributeKey::Dimensions);
  return dimensions.empty() ? 0 : dimensions[0];
}

// Copies a box of `sizes` between two arrays.
void copy_box(const Value& from, std::span<const int64_t> from_start, Value& to,
              std::span<const int64_t> to_start, std::span<const int64_t> sizes) {
  if (std::ranges::any_of(sizes, [](int64_t n) { return n <= 0; })) return;
  auto strides = [](const Shape& shape) {
    std::vector<int64_t> all(static_cast<size_t>(shape.rank()), 1);
    for (size_t d = all.size(); d-- > 1;) {
      all[d - 1] = all[d] * shape.dimension(static_cast<int64_t>(d));
    }
    return all;
  };
  const std::vector<int64_t> of_from = strides(from.shape()), of_to = strides(to.shape());
  int64_t read = 0, write = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    read += from_start[d] * of_from[d];
    write += to_start[d] * of_to[d];
  }
  const ElementType type = from.shape().element_type();
  copy_strided(type, sizes, at_element(type, from.data(), read), of_from,
               at_element(type, to.data(), write), of_to);
}

// Part `n` of `count` along a dimension.
Value part_along(const Value& whole, int64_t dimension, int64_t n, const Shape* shape) {
  Value made = Value::uninitialized(shape);
  std::vector<int64_t> start(static_cast<size_t>(shape->rank()), 0), zeros = start;
  if (!start.empty()) start[static_cast<size_t>(dimension)] = n * shape->dimension(dimension);
  copy_box(whole, start, made, zeros, shape->dimensions());
  return made;
}
Value joined_along(std::span<const Value> parts, int64_t dimension, const Shape* shape) {
  Value made = Value::uninitialized(shape);
  std::vector<int64_t> start(static_cast<size_t>(shape->rank()), 0);
  const std::vector<int64_t> zeros = start;
  for (const Value& part : parts) {
    copy_box(part, zeros, made, start, part.shape().dimensions());
    start[static_cast<size_t>(dimension)] += part.shape().dimension(dimension);
  }
  return made;
}

// The devices that the instruction joins with this one, in the order of their results.
std::vector<int64_t> members_of(const Instruction& i, const Participant& p) {
  const std::vector<std::vector<int64_t>> groups =
      device_groups(i.text(AttributeKey::ReplicaGroups));
  const int64_t replica = p.device / p.partitions, partition = p.device % p.partitions;
  const bool has_channel = i.has(AttributeKey::ChannelId);
  const bool is_global = i.flag(AttributeKey::UseGlobalDeviceIds);
  const bool reduces = i.opcode == Opcode::AllReduce || i.opcode == Opcode::AllReduceStart ||
                       i.opcode == Opcode::AllGather || i.opcode == Opcode::AllGatherStart ||
                       i.opcode == Opcode::ReduceScatter;
  auto is_present = [&](int64_t device) {
    return std::ranges::find(p.present, device) != p.present.end();
  };
  const int64_t replicas = std::max<int64_t>(1, (std::ranges::max(p.present) / p.partitions) + 1);
  // What the numbers of a group stand for: replicas, partitions or devices.
  enum class Stands : uint8_t { Replica, ReplicaOfAll, Partition, Device } stands;
  if (!has_channel) {
    stands = Stands::Replica;
  } else if (is_global) {
    stands = Stands::Device;
  } else {
    stands = reduces ? Stands::ReplicaOfAll : Stands::Partition;
  }
  std::vector<int64_t> found;
  auto add = [&](int64_t number) {
    switch (stands) {
      case Stands::Replica:
        found.push_back(number * p.partitions + partition);
        break;
      case Stands::ReplicaOfAll:
        for (int64_t k = 0; k < p.partitions; ++k) found.push_back(number * p.partitions + k);
        break;
      case Stands::Partition:
        found.push_back(replica * p.partitions + number);
        break;
      case Stands::Device:
        found.push_back(number);
        break;
    }
  };
  if (groups.empty() || groups[0].empty()) {
    const int64_t count = stands == Stands::Partition ? p.partitions
                          : stands == Stands::Device  ? replicas * p.partitions
                                                      : replicas;
    for (int64_t n = 0; n < count; ++n) add(n);
  } else {
    for (const std::vector<int64_t>& group : groups) {
      found.clear();
      for (int64_t one : group) add(one);
      if (std::ranges::find(found, p.device) != found.end()) break;
    }
  }
  std::erase_if(found, [&](int64_t one) { return !is_present(one); });
  LAMELLA_HLO_REQUIRE(std::ranges::find(found, p.device) != found.end(), i,
                      "expected replica_groups to name device ", p.device, ", got ",
                      i.text(AttributeKey::ReplicaGroups));
  return found;
}

// The sum, or what `to_apply` says, of an operand of all members in their order.
Value reduced(Step& step, std::span<const std::vector<Value>> all, size_t n, const Shape* shape) {
  Value sum = Value::writable(all[0][n]);
  ScalarCall call(*step.instruction.computation(AttributeKey::ToApply), step.run);
  const auto size = static_cast<size_t>(element_bytes(shape->element_type()));
  const int64_t count = sum.shape().elements();
  for (size_t member = 1; member < all.size(); ++member) {
    const auto* from = static_cast<const std::byte*>(all[member][n].data());
    auto* to = static_cast<std::byte*>(sum.data());
    for (int64_t e = 0; e < count; ++e, from += size, to += size) {
      const void* arguments[] = {to, from};
      void* result = to;
      call(arguments, std::span(&result, 1));
    }
  }
  return sum;
}

std::vector<std::pair<int64_t, int64_t>> pairs_of(const Instruction& i) {
  const std::vector<int64_t> numbers = numbers_of(i.text(AttributeKey::SourceTargetPairs));
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t n = 0; n + 1 < numbers.size(); n += 2) pairs.emplace_back(numbers[n], numbers[n + 1]);
  return pairs;
}

// Each run of rows goes to a device, at the row that its sender says.
Value ragged(std::span<const std::vector<Value>> all, size_t me) {
  auto numbers = [](const Value& value) {
    std::vector<int64_t> found;
    for (int64_t e = 0; e < value.shape().elements(); ++e) {
      found.push_back(value.shape().element_type() == ElementType::S64
                          ? value.values<int64_t>()[static_cast<size_t>(e)]
                          : value.values<int32_t>()[static_cast<size_t>(e)]);
    }
    return found;
  };
  Value result = Value::writable(all[me][1]);
  for (const std::vector<Value>& sender : all) {
    const std::vector<int64_t> starts = numbers(sender[2]), sizes = numbers(sender[3]),
                               targets = numbers(sender[4]);
    const size_t each = starts.size() / all.size();
    for (size_t k = me * each; k < (me + 1) * each; ++k) {
      const Shape &input = sender[0].shape(), &output = result.shape();
      if (sizes[k] < 0 || starts[k] < 0 || targets[k] < 0 ||
          starts[k] + sizes[k] > input.dimension(0) || targets[k] + sizes[k] > output.dimension(0))
        throw Error("expected runs of rows within the arrays");
      std::vector<int64_t> box(input.dimensions().begin(), input.dimensions().end());
      std::vector<int64_t> from(box.size(), 0), to(box.size(), 0);
      box[0] = sizes[k], from[0] = starts[k], to[0] = targets[k];
      copy_box(sender[0], from, result, to, box);
    }
  }
  return result;
}

// The results of all members, for operand `n` of one-operand forms.
std::vector<Value> results_of(Step& step, std::span<const std::vector<Value>> all,
                              const std::vector<int64_t>& members, size_t n, const Shape* shape) {
  const Instruction& i = step.instruction;
  const int64_t dimension = dimension_of(i);
  std::vector<Value> results(all.size());
  std::vector<Value> column;
  for (const std::vector<Value>& one : all) column.push_back(one[n]);
  switch (i.opcode) {
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::CollectiveReduce:
      std::ranges::fill(results, reduced(step, all, n, shape));
      return results;
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
      std::ranges::fill(results, joined_along(column, dimension, shape));
      return results;
    case Opcode::ReduceScatter: {
      const Value sum = reduced(step, all, n, shape);
      for (size_t m = 0; m < all.size(); ++m) {
        results[m] = part_along(sum, dimension, static_cast<int64_t>(m), shape);
      }
      return results;
    }
    case Opcode::AllToAll: {
      std::vector<int64_t> sizes(shape->dimensions().begin(), shape->dimensions().end());
      const auto d = static_cast<size_t>(dimension);
      sizes[d] /= static_cast<int64_t>(all.size());
      for (size_t m = 0; m < all.size(); ++m) {
        results[m] = Value::uninitialized(shape);
        for (size_t sender = 0; sender < all.size(); ++sender) {
          std::vector<int64_t> from(sizes.size(), 0), to(sizes.size(), 0);
          from[d] = static_cast<int64_t>(m) * sizes[d];
          to[d] = static_cast<int64_t>(sender) * sizes[d];
          copy_box(column[sender], from, results[m], to, sizes);
        }
      }
      return results;
    }
    case Opcode::CollectiveBroadcast:
      std::ranges::fill(results, column[0]);
      return results;
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart: {
      for (size_t m = 0; m < all.size(); ++m) results[m] = Value::zeros(shape);
      for (auto [from, to] : pairs_of(i)) {
        auto source = std::ranges::find(members, from), target = std::ranges::find(members, to);
        if (source == members.end() || target == members.end()) continue;
        results[static_cast<size_t>(target - members.begin())] =
            column[static_cast<size_t>(source - members.begin())];
      }
      return results;
    }
    default:
      LAMELLA_HLO_REQUIRE(false, i, "expected a collective that runs on several devices");
      return {};
  }
}

}  // namespace

Value evaluate_together(Step& step, const Participant& p, const Shape* shape) {
  const Instruction& i = step.instruction;
  const bool permutes =
      i.opcode == Opcode::CollectivePermute || i.opcode == Opcode::CollectivePermuteStart;
  std::vector<int64_t> members;
  if (permutes) {
    // All devices that are there: of other replicas or other partitions there are none here.
    members.assign(p.present.begin(), p.present.end());
  } else {
    members = members_of(i, p);
  }
  const auto me = static_cast<size_t>(std::ranges::find(members, p.device) - members.begin());
  std::vector<Value> operands(step.operands.begin(), step.operands.end());
  auto work = [&](std::span<const std::vector<Value>> all) {
    std::vector<Value> results(all.size());
    if (i.opcode == Opcode::RaggedAllToAll) {
      for (size_t m = 0; m < all.size(); ++m) results[m] = ragged(all, m);
      return results;
    }
    if (!shape->is_tuple()) return results_of(step, all, members, 0, shape);
    const size_t count = shape->tuple_shapes().size();
    if (i.opcode == Opcode::AllToAll) {  // operand n goes to member n
      for (size_t m = 0; m < all.size(); ++m) {
        std::vector<Value> parts;
        for (const std::vector<Value>& sender : all) parts.push_back(sender[m]);
        results[m] = Value::tuple(shape, parts);
      }
      return results;
    }
    std::vector<std::vector<Value>> parts(all.size());
    for (size_t n = 0; n < count; ++n) {
      std::vector<Value> made = results_of(step, all, members, n, &shape->tuple_shapes()[n]);
      for (size_t m = 0; m < all.size(); ++m) parts[m].push_back(std::move(made[m]));
    }
    for (size_t m = 0; m < all.size(); ++m) results[m] = Value::tuple(shape, parts[m]);
    return results;
  };
  return p.rendezvous->meet(&i, members, me, std::move(operands), work);
}

Value part_of(const Value& whole, const Sharding& sharding, int64_t device, const Shape* shape) {
  if (sharding.is_whole()) return whole;
  auto start = sharding.start_of(device, whole.shape().dimensions());
  if (!start || sharding.term_of(device) != 0) return Value::zeros(shape);
  Value made = Value::uninitialized(shape);
  std::vector<int64_t> sizes(shape->dimensions().begin(), shape->dimensions().end());
  for (size_t d = 0; d < sizes.size(); ++d) {
    sizes[d] = std::min(sizes[d], whole.shape().dimension(static_cast<int64_t>(d)) - (*start)[d]);
  }
  copy_box(whole, *start, made, std::vector<int64_t>(sizes.size(), 0), sizes);
  return made;
}
void join_part(const Value& part, const Sharding& sharding, int64_t device, Value& to) {
  auto start = sharding.start_of(device, to.shape().dimensions());
  if (!start) return;
  std::vector<int64_t> sizes(part.shape().dimensions().begin(), part.shape().dimensions().end());
  for (size_t d = 0; d < sizes.size(); ++d) {
    sizes[d] = std::min(sizes[d], to.shape().dimension(static_cast<int64_t>(d)) - (*start)[d]);
  }
  if (sharding.term_of(device) != 0) {
    Value before = Value::uninitialized(part.shape_pointer());
    copy_box(to, *start, before, std::vector<int64_t>(sizes.size(), 0), sizes);
    const Tensor sum = Tensor(tensor_of(before)) + Tensor(tensor_of(part));
    copy_box(value_of(sum.contiguous(), part.shape_pointer()),
             std::vector<int64_t>(sizes.size(), 0), to, *start, sizes);
    return;
  }
  copy_box(part, std::vector<int64_t>(sizes.size(), 0), to, *start, sizes);
}

bool is_manual_call(const Instruction& i) {
  return i.opcode == Opcode::CustomCall && i.text(AttributeKey::CustomCallTarget) == kManualTarget;
}

Value evaluate_manual(Step& step) {
  const Instruction& i = step.instruction;
  const Computation& body = *i.find(AttributeKey::CalledComputations)->computations()[0];
  auto attribute = [&](std::string_view name) {
    const std::string_view all = i.text(AttributeKey::FrontendAttributes);
    size_t begin = all.find(str(name, "=\""));
    if (begin == std::string_view::npos) return std::string_view();
    begin += name.size() + 2;
    return all.substr(begin, all.find('"', begin) - begin);
  };
  auto shardings = [&](std::string_view name, size_t count) {
    std::vector<Sharding> made;
    for (std::string_view one : Sharding::elements(attribute(name))) {
      made.push_back(Sharding::parse(one));
    }
    made.resize(count);
    return made;
  };
  const Participant* outer = step.run.context.participant;
  const int64_t here = outer != nullptr ? outer->device : 0;
  // The devices that run the region: those with this one, and with the others that come here too.
  std::vector<int64_t> devices, present;
  int64_t most = 0;
  for (const std::vector<int64_t>& group : device_groups(attribute("groups"))) {
    auto has = [&](int64_t device) { return std::ranges::find(group, device) != group.end(); };
    if (has(here)) devices = group;
    if (!group.empty()) most = std::max(most, std::ranges::max(group));
    const bool comes = outer != nullptr ? std::ranges::any_of(outer->present, has) : has(here);
    if (comes) present.insert(present.end(), group.begin(), group.end());
  }
  std::ranges::sort(present);
  LAMELLA_HLO_REQUIRE(!devices.empty(), i, "expected groups to name device ", here);
  const std::vector<Sharding> in = shardings("in_shardings", step.operands.size());
  const bool is_tuple = step.shape().is_tuple();
  const size_t count = is_tuple ? step.shape().tuple_shapes().size() : 1;
  const std::vector<Sharding> out = shardings("out_shardings", count);
  Rendezvous own;
  Rendezvous& rendezvous = outer != nullptr ? *outer->rendezvous : own;
  std::vector<Value> results(devices.size());
  on_each_device(devices.size(), rendezvous, [&](size_t d) {
    const std::unique_ptr<Run> run = step.run.another();
    const Participant participant{&rendezvous, devices[d],
                                  outer != nullptr ? outer->partitions : most + 1, present};
    run->context.participant = &participant;
    std::vector<Value> arguments;
    for (size_t n = 0; n < step.operands.size(); ++n) {
      arguments.push_back(part_of(step.operands[n], in[n], devices[d], body.parameters[n]->shape));
    }
    results[d] = run->call(body, arguments);
  });
  std::vector<Value> joined;
  for (size_t n = 0; n < count; ++n) {
    const Shape* shape = is_tuple ? &step.shape().tuple_shapes()[n] : &step.shape();
    auto result = [&](size_t d) -> const Value& {
      return is_tuple ? results[d].element(n) : results[d];
    };
    if (!shape->is_array() || out[n].is_whole()) {
      joined.push_back(result(0));
      continue;
    }
    Value whole = Value::uninitialized(shape);
    std::set<std::pair<int64_t, std::vector<int64_t>>> joined_parts;  // by term and start
    for (size_t d = 0; d < devices.size(); ++d) {
      auto start = out[n].start_of(devices[d], shape->dimensions());
      if (!start || !joined_parts.emplace(out[n].term_of(devices[d]), *start).second) continue;
      join_part(result(d), out[n], devices[d], whole);
    }
    joined.push_back(std::move(whole));
  }
  return is_tuple ? Value::tuple(i.shape, joined) : std::move(joined[0]);
}

}  // namespace lamella::hlo
