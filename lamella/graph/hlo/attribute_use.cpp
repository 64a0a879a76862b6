// Checking the attributes that an instruction's text states.
#include "lamella/graph/hlo/attribute_use.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

class KeySet {
 public:
  constexpr void add(AttributeKey key) { word(key) |= bit(key); }
  constexpr bool has(AttributeKey key) const { return (words_[place(key)] & bit(key)) != 0; }
  constexpr void add_all(const KeySet& other) {
    for (size_t n = 0; n < words_.size(); ++n) words_[n] |= other.words_[n];
  }

 private:
  static constexpr size_t place(AttributeKey key) { return static_cast<size_t>(key) / 64; }
  static constexpr uint64_t bit(AttributeKey key) {
    return uint64_t{1} << (static_cast<size_t>(key) % 64);
  }
  constexpr uint64_t& word(AttributeKey key) { return words_[place(key)]; }
  std::array<uint64_t, 2> words_{};
};
template <class... Keys>
constexpr KeySet set_of(Keys... keys) {
  KeySet set;
  (set.add(keys), ...);
  return set;
}

constexpr KeySet kOfEveryOpcode = [] {
  using enum AttributeKey;
  return set_of(Sharding, FrontendAttributes, Statistics, ParameterReplication, ControlPredecessors,
                Origin, Metadata, BackendConfig);
}();

struct Use {
  KeySet required, allowed;
};
constexpr size_t kOpcodeCount = 0
#define LAMELLA_HLO_OPCODE(...) +1
#include "lamella/graph/hlo/opcode.def"
    ;
constexpr auto kUses = [] {
  using enum AttributeKey;
  std::array<Use, kOpcodeCount> uses{};
#define LAMELLA_HLO_USE(opcode, required_keys, optional_keys) \
  {                                                           \
    Use& use = uses[static_cast<size_t>(Opcode::opcode)];     \
    use.required = set_of required_keys;                      \
    use.allowed = set_of optional_keys;                       \
    use.allowed.add_all(use.required);                        \
  }
#include "lamella/graph/hlo/attribute_use.def"
  for (Use& use : uses) use.allowed.add_all(kOfEveryOpcode);
  return uses;
}();
constexpr size_t kAttributeCount = 0
#define LAMELLA_HLO_ATTRIBUTE(...) +1
#include "lamella/graph/hlo/attribute.def"
    ;

// Some opcodes have exactly one dimension, and collectives at least one.
void require_one_dimension(const Instruction& i) {
  using enum AttributeKey;
  bool has = i.has(Dimensions), at_least = i.opcode == Opcode::AllGather ||
                                           i.opcode == Opcode::AllGatherStart ||
                                           i.opcode == Opcode::ReduceScatter;
  size_t count = i.integers(Dimensions).size();
  if (has && (at_least ? count == 0 : count != 1)) {
    fail(i, "expected dimensions to name one dimension, got ", braced(i.integers(Dimensions)));
  }
}

// Over pred[] there are two computations of their own names, over s32[] a list of branches.
void require_branches(const Instruction& i) {
  using enum AttributeKey;
  bool listed = i.has(BranchComputations);
  const Shape& which = array_operand(i, 0);
  ElementType type = listed ? ElementType::S32 : ElementType::PRED;
  LAMELLA_HLO_REQUIRE(which.is_scalar() && which.element_type() == type, i,
                      "expected operand 0 to be ", element_name(type), "[], got ",
                      which.to_string(false));
  for (AttributeKey key : {TrueComputation, FalseComputation}) {
    LAMELLA_HLO_REQUIRE(i.has(key) != listed, i, "expected ", listed ? "no" : "the", " attribute ",
                        attribute_name(key), listed ? ", got one" : ", got none");
  }
}

}  // namespace

bool takes_attribute(Opcode opcode, AttributeKey key) {
  return kUses[static_cast<size_t>(opcode)].allowed.has(key);
}

void require_attributes(const Instruction& i) {
  using enum AttributeKey;
  for (size_t n = 0; n < kAttributeCount; ++n) {
    auto key = static_cast<AttributeKey>(n);
    if (kUses[static_cast<size_t>(i.opcode)].required.has(key) && !i.has(key)) {
      fail(i, "expected the attribute ", attribute_name(key), ", got none");
    }
  }
  switch (i.opcode) {
    case Opcode::Broadcast:
      if (!i.has(Dimensions) && !i.operand_shape(0).is_scalar()) {
        fail(i, "expected the attribute dimensions, got none");
      }
      break;
    case Opcode::Conditional:
      return require_branches(i);
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
    case Opcode::AllToAll:
    case Opcode::Concatenate:
    case Opcode::GetDimensionSize:
    case Opcode::RaggedAllToAll:
    case Opcode::Scan:
    case Opcode::SetDimensionSize:
    case Opcode::Sort:
      return require_one_dimension(i);
    case Opcode::GetTupleElement:
      if (i.operands.empty() || i.operand_shape(0).is_tuple()) infer_shape(i);
      break;
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice: {
      size_t arrays = i.opcode == Opcode::DynamicSlice ? 1 : 2, count = i.operands.size();
      size_t rank = array_operand(i, 0).dimensions().size();
      if (count == arrays + rank) break;
      if (count == arrays + 1 && i.operand_shape(arrays).rank() == 1) break;
      fail(i, "expected ", rank, " operands with start indices, got ",
           count - std::min(count, arrays));
    }
    case Opcode::RecvDone:
      if (!i.operands.empty() && !i.operand_shape(0).tuple_shapes().empty()) break;
      fail(i, "expected a tuple as operand 0, got another");
    case Opcode::Infeed:
    case Opcode::Recv:
      if (i.shape->is_tuple() && !i.shape->tuple_shapes().empty()) break;
      fail(i, "expected a tuple as the result, got ", i.shape->to_string(false));
    case Opcode::CustomCall: {
      std::string_view version = i.text(ApiVersion);
      bool known = version.empty() ||
                   std::find(std::begin(kApiVersions) + 1, std::end(kApiVersions), version) !=
                       std::end(kApiVersions);
      if (!known) {
        fail(i, "expected api_version to be API_VERSION_ORIGINAL, API_VERSION_STATUS_RETURNING, ",
             "API_VERSION_STATUS_RETURNING_UNIFIED or API_VERSION_TYPED_FFI, got '", version, "'");
      }
      infer_shape(i);
      break;
    }
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::ReduceScatter:
      if (i.flag(UseGlobalDeviceIds) && !i.has(ChannelId)) {
        fail(i, "expected use_global_device_ids with a channel_id, got none");
      }
      if (i.opcode == Opcode::ReduceScatter) require_one_dimension(i);
      break;
    case Opcode::Reshape:
    case Opcode::DynamicReshape:
      if (!i.shape->is_abstract() && !array_operand(i, 0).is_abstract()) infer_shape(i);
      break;
    case Opcode::Tuple:
      if (i.shape->is_tuple() && i.shape->tuple_shapes().size() == i.operands.size()) break;
      fail(i, "expected an operand for each element of ", i.shape->to_string(false), ", got ",
           i.operands.size());
    default:
      break;
  }
}

namespace {

const Instruction* start_of(const Instruction& link) {
  const Instruction* at = &link;
  while (at->opcode == Opcode::AsyncUpdate || at->opcode == Opcode::AsyncDone) {
    at = at->operands[0];
  }
  return at->opcode == Opcode::AsyncStart ? at : nullptr;
}

}  // namespace

void require_chain(const Instruction& i, std::optional<Opcode> wrapped) {
  using enum AttributeKey;
  bool is_link = i.opcode == Opcode::AsyncStart || i.opcode == Opcode::AsyncUpdate ||
                 i.opcode == Opcode::AsyncDone;
  if (!is_link) return;
  if (i.opcode == Opcode::AsyncStart || i.opcode == Opcode::AsyncUpdate) {
    const auto& parts = i.shape->tuple_shapes();
    if (parts.size() < 2 || !parts[0].is_tuple()) {
      fail(i,
           "expected the start of a pair to give its operands and its result, "
           "got ",
           i.shape->to_string(false));
    }
  }
  if (i.opcode == Opcode::AsyncStart) return;
  bool one = i.operands.size() == 1 && (i.operands[0]->opcode == Opcode::AsyncStart ||
                                        i.operands[0]->opcode == Opcode::AsyncUpdate);
  if (!one) {
    fail(i, "expected '", opcode_name(i.opcode),
         "' to have an async-start or async-update as its only operand");
  }
  if (i.opcode == Opcode::AsyncUpdate && !i.operand_shape(0).compatible(*i.shape)) {
    fail(i, "expected the shape to be that of the operand, ", i.operand_shape(0).to_string(false),
         ", got ", i.shape->to_string(false));
  }
  const Instruction* start = start_of(i);
  if (start == nullptr) return;
  const Computation* body = start->computation(Calls);
  if (wrapped && body != nullptr && body->root->opcode != *wrapped) {
    fail(i, "expected the chain to be of '", opcode_name(body->root->opcode), "', got '",
         opcode_name(*wrapped), "'");
  }
  if (i.has(Calls) && body != nullptr && i.computation(Calls) != body) {
    fail(i, "expected the chain to call '", body->name, "', got another");
  }
  auto thread = [](const Instruction& link) {
    std::string_view text = link.text(AsyncExecutionThread);
    return text.empty() ? std::string_view("main") : text;
  };
  if (i.has(AsyncExecutionThread) && thread(i) != thread(*start)) {
    fail(i, "expected async_execution_thread of the chain to be ", thread(*start), ", got ",
         thread(i));
  }
}

void require_own_computations(const Module& module) {
  using enum AttributeKey;
  std::unordered_map<const Computation*, const Instruction*> starts;
  for (const Computation* computation : module.computations) {
    for (const Instruction* i : computation->instructions) {
      if (i->opcode != Opcode::AsyncStart) continue;
      const Computation* body = i->computation(Calls);
      if (starts.emplace(body, i).second) continue;
      fail(*i, "expected '", body->name, "' to be called by one async-start, got two");
    }
  }
}

}  // namespace lamella::hlo
