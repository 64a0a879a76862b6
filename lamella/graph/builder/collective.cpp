// Builder functions for communication between replicas and with the host.
#include "lamella/graph/builder/collective.h"

#include "lamella/graph/builder/constant.h"
#include "lamella/graph/builder/control.h"
#include "lamella/graph/builder/data_movement.h"
#include "lamella/graph/builder/elementwise.h"
#include "lamella/graph/builder/emission.h"

namespace lamella::hlo {
namespace {

std::string text_of(Span<ReplicaGroup> groups) {
  std::string text = "{";
  for (const ReplicaGroup& group : groups) {
    if (text.size() > 1) text += ',';
    text += braced(group.replica_ids());
  }
  return text += '}';
}
AttributeList attributes_of(Emission& e, Span<ReplicaGroup> groups,
                            const std::optional<ChannelHandle>& channel,
                            std::optional<bool> global_ids = std::nullopt) {
  AttributeList attributes = e.attributes();
  if (channel) attributes.integer(AttributeKey::ChannelId, channel->handle());
  attributes.text(AttributeKey::ReplicaGroups, text_of(groups));
  if (global_ids.value_or(false)) attributes.flag(AttributeKey::UseGlobalDeviceIds, true);
  return attributes;
}
// The shape with another size of one dimension and, if given, another layout.
Shape resized(const Shape& shape, int64_t dimension, int64_t size,
              const std::optional<Layout>& layout) {
  std::vector<int64_t> sizes(shape.dimensions().begin(), shape.dimensions().end());
  sizes[static_cast<size_t>(dimension)] = size;
  Shape made = Shape::array(shape.element_type(), std::move(sizes));
  if (layout) made.set_layout(layout->minor_to_major());
  return made;
}
Op all_reduce(Emission& e, Span<Op> operands, const BuiltComputation& computation,
              Span<ReplicaGroup> groups, const std::optional<ChannelHandle>& channel,
              const std::optional<Shape>& shape, std::optional<bool> global_ids, bool as_tuple) {
  std::vector<Shape> shapes;
  for (Op op : operands) shapes.push_back(e.array(op, "operand"));
  Shape result = as_tuple ? Shape::tuple(shapes) : shapes[0];
  Computation* combiner = e.import(computation, "computation");
  LAMELLA_EXPECT(combiner->parameters.size() == 2, "'computation' to have 2 parameters, got ",
                 combiner->parameters.size());
  if (shape) {
    LAMELLA_EXPECT(shape->compatible(result), "'shape_with_layout' to be ", result.to_string(false),
                   ", got ", shape->to_string(false));
    result = *shape;
  }
  AttributeList attributes = attributes_of(e, groups, channel, global_ids);
  if (shape) attributes.flag(AttributeKey::ConstrainLayout, true);
  attributes.computation(AttributeKey::ToApply, combiner);
  return e.add(Opcode::AllReduce, operands, std::move(attributes), result);
}

}  // namespace

Op ReplicaId(Within builder) {
  return emit("ReplicaId", builder, [&](Emission& e) {
    return e.add(Opcode::ReplicaId, {}, e.attributes(), Shape::scalar(ElementType::U32));
  });
}
Op AllReduce(Operand operand, const BuiltComputation& computation,
             Span<ReplicaGroup> replica_groups, const std::optional<ChannelHandle>& channel_id,
             const std::optional<Shape>& shape_with_layout,
             std::optional<bool> use_global_device_ids) {
  return emit("AllReduce", operand, [&](Emission& e) {
    return all_reduce(e, {Op(operand)}, computation, replica_groups, channel_id, shape_with_layout,
                      use_global_device_ids, false);
  });
}
Op AllReduceTuple(Operands operands, const BuiltComputation& computation,
                  Span<ReplicaGroup> replica_groups, const std::optional<ChannelHandle>& channel_id,
                  const std::optional<Shape>& shape_with_layout,
                  std::optional<bool> use_global_device_ids) {
  return emit("AllReduceTuple", operands, [&](Emission& e) {
    return all_reduce(e, operands, computation, replica_groups, channel_id, shape_with_layout,
                      use_global_device_ids, true);
  });
}
Op CrossReplicaSum(Operand operand, Span<ReplicaGroup> replica_groups) {
  return emit("CrossReplicaSum", operand, [&](Emission& e) {
    Shape scalar = Shape::scalar(e.array(operand, "operand").element_type());
    std::unique_ptr<Builder> sum = e.builder()->CreateSubBuilder("sum");
    Op x = Parameter(Within(sum.get(), e.where()), 0, scalar, "x");
    Op y = Parameter(Within(sum.get(), e.where()), 1, scalar, "y");
    Op both = scalar.element_type() == ElementType::PRED ? Or(e.at(x), y) : Add(e.at(x), y);
    return AllReduce(e.at(operand), sum->Build(both).value(), replica_groups);
  });
}
Op AllGather(Operand operand, int64_t all_gather_dimension, int64_t shard_count,
             Span<ReplicaGroup> replica_groups, const std::optional<ChannelHandle>& channel_id,
             const std::optional<Layout>& layout, std::optional<bool> use_global_device_ids) {
  return emit("AllGather", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    require_dimension(shape, all_gather_dimension, "all_gather_dimension");
    LAMELLA_EXPECT(shard_count > 0, "'shard_count' to be positive, got ", shard_count);
    AttributeList attributes = attributes_of(e, replica_groups, channel_id, use_global_device_ids);
    attributes.integers(AttributeKey::Dimensions, std::vector<int64_t>{all_gather_dimension});
    int64_t size = shape.dimension(all_gather_dimension) * shard_count;
    return e.add(Opcode::AllGather, {operand}, std::move(attributes),
                 resized(shape, all_gather_dimension, size, layout));
  });
}
Op ReduceScatter(Operand operand, const BuiltComputation& computation, int64_t scatter_dimension,
                 int64_t shard_count, Span<ReplicaGroup> replica_groups,
                 const std::optional<ChannelHandle>& channel_id,
                 const std::optional<Layout>& layout, std::optional<bool> use_global_device_ids) {
  return emit("ReduceScatter", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    require_dimension(shape, scatter_dimension, "scatter_dimension");
    int64_t size = shape.dimension(scatter_dimension);
    LAMELLA_EXPECT(shard_count > 0 && size % shard_count == 0, "'shard_count' to divide ", size,
                   ", got ", shard_count);
    AttributeList attributes = attributes_of(e, replica_groups, channel_id, use_global_device_ids);
    attributes.integers(AttributeKey::Dimensions, std::vector<int64_t>{scatter_dimension});
    attributes.computation(AttributeKey::ToApply, e.import(computation, "computation"));
    return e.add(Opcode::ReduceScatter, {operand}, std::move(attributes),
                 resized(shape, scatter_dimension, size / shard_count, layout));
  });
}
Op AllToAll(Operand operand, int64_t split_dimension, int64_t concat_dimension, int64_t split_count,
            Span<ReplicaGroup> replica_groups, const std::optional<Layout>& layout,
            const std::optional<ChannelHandle>& channel_id) {
  return emit("AllToAll", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    require_dimension(shape, split_dimension, "split_dimension");
    require_dimension(shape, concat_dimension, "concat_dimension");
    int64_t size = shape.dimension(split_dimension);
    LAMELLA_EXPECT(split_count > 0 && size % split_count == 0, "'split_count' to divide ", size,
                   ", got ", split_count);
    AttributeList attributes = attributes_of(e, replica_groups, channel_id);
    attributes.integers(AttributeKey::Dimensions, std::vector<int64_t>{split_dimension});
    Op exchanged = e.add(Opcode::AllToAll, {operand}, std::move(attributes),
                         resized(shape, split_dimension, size, layout));
    if (split_dimension == concat_dimension) return exchanged;
    // The parts are contiguous along split_dimension; they move to just before concat_dimension.
    std::vector<int64_t> parts, order;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d == split_dimension) parts.push_back(split_count);
      parts.push_back(d == split_dimension ? size / split_count : shape.dimension(d));
    }
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d == concat_dimension) order.push_back(split_dimension);
      order.push_back(d >= split_dimension ? d + 1 : d);
    }
    Op moved = Transpose(e.at(Reshape(e.at(exchanged), parts)), order);
    std::vector<int64_t> sizes(shape.dimensions().begin(), shape.dimensions().end());
    sizes[static_cast<size_t>(split_dimension)] /= split_count;
    sizes[static_cast<size_t>(concat_dimension)] *= split_count;
    return Reshape(e.at(moved), sizes);
  });
}
Op CollectivePermute(Operand operand, Span<std::pair<int64_t, int64_t>> source_target_pairs,
                     const std::optional<ChannelHandle>& channel_id) {
  return emit("CollectivePermute", operand, [&](Emission& e) {
    std::string pairs = "{";
    for (const auto& [source, target] : source_target_pairs) {
      if (pairs.size() > 1) pairs += ',';
      pairs += str("{", source, ",", target, "}");
    }
    AttributeList attributes = e.attributes();
    if (channel_id) attributes.integer(AttributeKey::ChannelId, channel_id->handle());
    attributes.text(AttributeKey::SourceTargetPairs, pairs + "}");
    return e.add(Opcode::CollectivePermute, {operand}, std::move(attributes));
  });
}
Op CollectiveBroadcast(Operand operand, Span<ReplicaGroup> replica_groups,
                       const std::optional<ChannelHandle>& channel_id) {
  return emit("CollectiveBroadcast", operand, [&](Emission& e) {
    return e.add(Opcode::CollectiveBroadcast, {operand},
                 attributes_of(e, replica_groups, channel_id));
  });
}

Op InfeedWithToken(Operand token, const Shape& shape, const std::string& config) {
  return emit("InfeedWithToken", token, [&](Emission& e) {
    LAMELLA_EXPECT(e.shape(token).is_token(), "'token' to be a token, got ",
                   e.shape(token).to_string(false));
    LAMELLA_EXPECT(shape.is_valid(), "'shape' to be set, got ", shape.to_string(false));
    AttributeList attributes = e.attributes();
    if (!config.empty()) attributes.text(AttributeKey::InfeedConfig, config);
    return e.add(Opcode::Infeed, {token}, std::move(attributes),
                 Shape::tuple({shape, Shape::token()}));
  });
}
Op Infeed(Within builder, const Shape& shape, const std::string& config) {
  return emit("Infeed", builder, [&](Emission& e) {
    Op both = InfeedWithToken(e.at(CreateToken(e.within())), shape, config);
    return GetTupleElement(e.at(both), 0);
  });
}
Op OutfeedWithToken(Operand operand, Op token, const Shape& shape_with_layout,
                    const std::string& outfeed_config) {
  return emit("OutfeedWithToken", operand, [&](Emission& e) {
    LAMELLA_EXPECT(e.shape(token).is_token(), "'token' to be a token, got ",
                   e.shape(token).to_string(false));
    LAMELLA_EXPECT(e.shape(operand).compatible(shape_with_layout), "'shape_with_layout' to be ",
                   e.shape(operand).to_string(false), ", got ", shape_with_layout.to_string(false));
    AttributeList attributes = e.attributes();
    if (!outfeed_config.empty()) attributes.text(AttributeKey::OutfeedConfig, outfeed_config);
    attributes.shape(AttributeKey::OutfeedShape, shape_with_layout);
    return e.add(Opcode::Outfeed, {operand, token}, std::move(attributes), Shape::token());
  });
}
void Outfeed(Operand operand, const Shape& shape_with_layout, const std::string& outfeed_config) {
  emit("Outfeed", operand, [&](Emission& e) {
    Op token = CreateToken(e.within());
    OutfeedWithToken(e.at(operand), token, shape_with_layout, outfeed_config);
    // The last op is the default result of a computation; an empty tuple means no result.
    return Tuple(e.within(), {});
  });
}

namespace {

void require_token(Emission& e, Op token) {
  LAMELLA_EXPECT(e.shape(token).is_token(), "'token' to be a token, got ",
                 e.shape(token).to_string(false));
}
void require_type(const ChannelHandle& handle, ChannelHandle::ChannelType type, const char* name) {
  LAMELLA_EXPECT(handle.type() == type, "'handle' of type ", name, ", got type ",
                 static_cast<int>(handle.type()));
}
AttributeList channel(Emission& e, const ChannelHandle& handle, bool host) {
  AttributeList attributes = e.attributes();
  attributes.integer(AttributeKey::ChannelId, handle.handle());
  if (host) attributes.flag(AttributeKey::IsHostTransfer, true);
  return attributes;
}
Op send(Emission& e, Op operand, Op token, const ChannelHandle& handle, bool host) {
  require_token(e, token);
  Shape state =
      Shape::tuple({e.array(operand, "operand"), Shape::scalar(ElementType::U32), Shape::token()});
  Op sent = e.add(Opcode::Send, {operand, token}, channel(e, handle, host), state);
  return e.add(Opcode::SendDone, {sent}, channel(e, handle, host), Shape::token());
}
Op receive(Emission& e, Op token, const Shape& shape, const ChannelHandle& handle, bool host) {
  require_token(e, token);
  LAMELLA_EXPECT(shape.is_array(), "'shape' to be an array's, got ", shape.to_string(false));
  Shape state = Shape::tuple({shape, Shape::scalar(ElementType::U32), Shape::token()});
  Op begun = e.add(Opcode::Recv, {token}, channel(e, handle, host), state);
  return e.add(Opcode::RecvDone, {begun}, channel(e, handle, host),
               Shape::tuple({shape, Shape::token()}));
}

}  // namespace

Op SendWithToken(Operand operand, Op token, const ChannelHandle& handle) {
  return emit("SendWithToken", operand, [&](Emission& e) {
    require_type(handle, ChannelHandle::DEVICE_TO_DEVICE, "DEVICE_TO_DEVICE");
    return send(e, operand, token, handle, false);
  });
}
void Send(Operand operand, const ChannelHandle& handle) {
  emit("Send", operand, [&](Emission& e) {
    require_type(handle, ChannelHandle::DEVICE_TO_DEVICE, "DEVICE_TO_DEVICE");
    return send(e, operand, CreateToken(e.within()), handle, false);
  });
}
Op RecvWithToken(Operand token, const Shape& shape, const ChannelHandle& handle) {
  return emit("RecvWithToken", token, [&](Emission& e) {
    require_type(handle, ChannelHandle::DEVICE_TO_DEVICE, "DEVICE_TO_DEVICE");
    return receive(e, token, shape, handle, false);
  });
}
Op Recv(Within builder, const Shape& shape, const ChannelHandle& handle) {
  return emit("Recv", builder, [&](Emission& e) {
    require_type(handle, ChannelHandle::DEVICE_TO_DEVICE, "DEVICE_TO_DEVICE");
    Op both = receive(e, CreateToken(e.within()), shape, handle, false);
    return GetTupleElement(e.at(both), 0);
  });
}
Op SendToHost(Operand operand, Op token, const Shape& shape_with_layout,
              const ChannelHandle& handle) {
  return emit("SendToHost", operand, [&](Emission& e) {
    require_type(handle, ChannelHandle::DEVICE_TO_HOST, "DEVICE_TO_HOST");
    LAMELLA_EXPECT(e.shape(operand).compatible(shape_with_layout), "'shape_with_layout' to be ",
                   e.shape(operand).to_string(false), ", got ", shape_with_layout.to_string(false));
    return send(e, operand, token, handle, true);
  });
}
Op RecvFromHost(Operand token, const Shape& shape, const ChannelHandle& handle) {
  return emit("RecvFromHost", token, [&](Emission& e) {
    require_type(handle, ChannelHandle::HOST_TO_DEVICE, "HOST_TO_DEVICE");
    return receive(e, token, shape, handle, true);
  });
}

}  // namespace lamella::hlo
