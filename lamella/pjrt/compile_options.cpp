// Reading and writing the few messages of protobuf that PJRT passes on.
#include "lamella/pjrt/compile_options.h"

#include <algorithm>

#include "lamella/pjrt/status.h"

namespace lamella::pjrt {
namespace {

// Note [Messages]
//   A message is a list of fields, each a key and a value: key = number * 8 + wire type. Type 0 is
//   a varint (7 bits a byte, least first), 1 and 5 are 8 and 4 bytes, 2 is a length and so many
//   bytes.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}
  // The next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    uint64_t key = varint();
    field = static_cast<int>(key >> 3);
    number = 0;
    bytes = {};
    switch (key & 7) {
      case 0:
        number = varint();
        return true;
      case 1:
        take(8);
        return true;
      case 2:
        bytes = take(varint());
        return true;
      case 5:
        take(4);
        return true;
      default:
        malformed();
    }
  }
  bool at_end() const { return rest_.empty(); }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
    malformed();
  }

  int field = 0;
  uint64_t number = 0;
  std::string_view bytes;

 private:
  [[noreturn]] static void malformed() {
    fail(Code::InvalidArgument, "lamella: expected a CompileOptionsProto");
  }
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) malformed();
    std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
};

constexpr int kOverrides = 7, kOverrideName = 1;
// Fields of ExecutableBuildOptionsProto and DeviceAssignmentProto.
constexpr int kBuildOptions = 3, kReplicas = 4, kPartitions = 5, kDeviceAssignment = 9;
constexpr int kReplicaCount = 1, kComputationCount = 2, kComputations = 3, kDeviceIds = 1;

void read_devices(std::string_view bytes, Assignment* to) {
  std::vector<std::vector<int>> partitions;
  for (Message assignment(bytes); assignment.next();) {
    if (assignment.field != kComputations) continue;
    std::vector<int>& ids = partitions.emplace_back();
    for (Message computation(assignment.bytes); computation.next();) {
      if (computation.field != kDeviceIds) continue;
      if (computation.bytes.empty()) {
        ids.push_back(static_cast<int>(computation.number));
      } else {
        for (Message packed(computation.bytes); !packed.at_end();) {
          ids.push_back(static_cast<int>(packed.varint()));
        }
      }
    }
  }
  auto replicas = static_cast<size_t>(to->replicas);
  require(partitions.size() == static_cast<size_t>(to->partitions), "lamella: expected devices of ",
          to->partitions, " partitions, got ", partitions.size());
  for (size_t r = 0; r < replicas; ++r) {
    for (const std::vector<int>& ids : partitions) {
      require(ids.size() == replicas, "lamella: expected ", replicas, " replicas, got ",
              ids.size());
      to->devices.push_back(ids[r]);
    }
  }
}

// Options by name: XLA's own, which mean nothing here, are taken; others are mistakes.
void check_override(std::string_view entry) {
  constexpr std::string_view kEfforts[] = {"exec_time_optimization_effort", "memory_fitting_effort",
                                           "optimization_level", "memory_fitting_level"};
  for (Message pair(entry); pair.next();) {
    if (pair.field != kOverrideName) continue;
    require(pair.bytes.starts_with("xla_") || std::ranges::count(kEfforts, pair.bytes) != 0,
            "No such compile option: '", pair.bytes, "'");
  }
}

}  // namespace

Assignment assignment_of(std::string_view compile_options) {
  Assignment made;
  std::string_view devices;
  for (Message options(compile_options); options.next();) {
    if (options.field == kOverrides) check_override(options.bytes);
    if (options.field != kBuildOptions) continue;
    for (Message build(options.bytes); build.next();) {
      if (build.field == kReplicas) made.replicas = static_cast<int>(build.number);
      if (build.field == kPartitions) made.partitions = static_cast<int>(build.number);
      if (build.field == kDeviceAssignment) devices = build.bytes;
    }
  }
  constexpr int kMost = 1 << 16;
  require(made.replicas >= 1 && made.replicas <= kMost && made.partitions >= 1 &&
              made.partitions <= kMost,
          "lamella: expected at least one replica and partition, got ", made.replicas, " and ",
          made.partitions);
  if (!devices.empty()) read_devices(devices, &made);
  return made;
}

void add_number(std::string& to, int field, uint64_t number) {
  auto varint = [&](uint64_t value) {
    for (; value >= 128; value >>= 7) to += static_cast<char>((value & 127) | 128);
    to += static_cast<char>(value);
  };
  varint(static_cast<uint64_t>(field) << 3);
  varint(number);
}
void add_bytes(std::string& to, int field, std::string_view bytes) {
  size_t at = to.size();
  add_number(to, field, bytes.size());
  to[at] = static_cast<char>(to[at] | 2);
  to += bytes;
}

std::string device_assignment_proto(const Assignment& assignment) {
  std::string made;
  add_number(made, kReplicaCount, static_cast<uint64_t>(assignment.replicas));
  add_number(made, kComputationCount, static_cast<uint64_t>(assignment.partitions));
  for (int p = 0; p < assignment.partitions; ++p) {
    std::string ids;
    for (int r = 0; r < assignment.replicas; ++r) {
      add_number(ids, kDeviceIds,
                 static_cast<uint64_t>(assignment.device(r * assignment.partitions + p)));
    }
    add_bytes(made, kComputations, ids);
  }
  return made;
}

}  // namespace lamella::pjrt
