// Builder functions for communication between replicas and with the host. Source: XLA's operation
// semantics.
#pragma once
#include "lamella/graph/builder/builder.h"
#include "lamella/graph/builder/shape_util.h"

namespace lamella::hlo {

// The number of the replica, a U32.
Op ReplicaId(Within builder);

// Combines the operands of all replicas of a group; without groups, of all replicas.
Op AllReduce(Operand operand, const BuiltComputation& computation,
             Span<ReplicaGroup> replica_groups = {},
             const std::optional<ChannelHandle>& channel_id = std::nullopt,
             const std::optional<Shape>& shape_with_layout = std::nullopt,
             std::optional<bool> use_global_device_ids = std::nullopt);
Op AllReduceTuple(Operands operands, const BuiltComputation& computation,
                  Span<ReplicaGroup> replica_groups = {},
                  const std::optional<ChannelHandle>& channel_id = std::nullopt,
                  const std::optional<Shape>& shape_with_layout = std::nullopt,
                  std::optional<bool> use_global_device_ids = std::nullopt);
Op CrossReplicaSum(Operand operand, Span<ReplicaGroup> replica_groups = {});
// Joins the operands of the `shard_count` replicas of a group along a dimension.
Op AllGather(Operand operand, int64_t all_gather_dimension, int64_t shard_count,
             Span<ReplicaGroup> replica_groups = {},
             const std::optional<ChannelHandle>& channel_id = std::nullopt,
             const std::optional<Layout>& layout = std::nullopt,
             std::optional<bool> use_global_device_ids = std::nullopt);
// Reduces as AllReduce does, but each replica gets only its part along scatter_dimension.
Op ReduceScatter(Operand operand, const BuiltComputation& computation, int64_t scatter_dimension,
                 int64_t shard_count, Span<ReplicaGroup> replica_groups = {},
                 const std::optional<ChannelHandle>& channel_id = std::nullopt,
                 const std::optional<Layout>& layout = std::nullopt,
                 std::optional<bool> use_global_device_ids = std::nullopt);
// Part i along split_dimension goes to the i-th replica; parts are joined along concat_dimension.
Op AllToAll(Operand operand, int64_t split_dimension, int64_t concat_dimension, int64_t split_count,
            Span<ReplicaGroup> replica_groups = {},
            const std::optional<Layout>& layout = std::nullopt,
            const std::optional<ChannelHandle>& channel_id = std::nullopt);
Op CollectivePermute(Operand operand, Span<std::pair<int64_t, int64_t>> source_target_pairs,
                     const std::optional<ChannelHandle>& channel_id = std::nullopt);
Op CollectiveBroadcast(Operand operand, Span<ReplicaGroup> replica_groups,
                       const std::optional<ChannelHandle>& channel_id = std::nullopt);

// The next value that the host feeds, of this shape.
Op Infeed(Within builder, const Shape& shape, const std::string& config = "");
// Returns (data, token). The infeed is ordered after the operand token.
Op InfeedWithToken(Operand token, const Shape& shape, const std::string& config = "");
// Sends the operand to the host.
void Outfeed(Operand operand, const Shape& shape_with_layout, const std::string& outfeed_config);
Op OutfeedWithToken(Operand operand, Op token, const Shape& shape_with_layout,
                    const std::string& outfeed_config);

// Sends to another program over a channel; see Recv.
void Send(Operand operand, const ChannelHandle& handle);
Op SendWithToken(Operand operand, Op token, const ChannelHandle& handle);
Op Recv(Within builder, const Shape& shape, const ChannelHandle& handle);
// Returns (data, token).
Op RecvWithToken(Operand token, const Shape& shape, const ChannelHandle& handle);
// Transfers to and from the host. The handle's type is DEVICE_TO_HOST or HOST_TO_DEVICE.
Op SendToHost(Operand operand, Op token, const Shape& shape_with_layout,
              const ChannelHandle& handle);
Op RecvFromHost(Operand token, const Shape& shape, const ChannelHandle& handle);

}  // namespace lamella::hlo
