// Names of opcodes and attributes.
#include "lamella/graph/hlo/attribute.h"
#include "lamella/graph/hlo/name_table.h"
#include "lamella/graph/hlo/opcode.h"

namespace lamella::hlo {
namespace {

constexpr std::array kOpcodeNames = {
#define LAMELLA_HLO_OPCODE(name, text, operands, ...) std::string_view(text),
#include "lamella/graph/hlo/opcode.def"
};
constexpr std::array kOpcodeOperands = {
#define LAMELLA_HLO_OPCODE(name, text, operands, ...) operands,
#include "lamella/graph/hlo/opcode.def"
};
constexpr std::array kOpcodeFamilies = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, ...) Family::family,
#include "lamella/graph/hlo/opcode.def"
};
constexpr NameTable<512, kOpcodeNames.size()> kOpcodes(kOpcodeNames);

constexpr std::array kAttributeNames = {
#define LAMELLA_HLO_ATTRIBUTE(name, text, kind) std::string_view(text),
#include "lamella/graph/hlo/attribute.def"
};
constexpr std::array kAttributeKinds = {
#define LAMELLA_HLO_ATTRIBUTE(name, text, kind) AttributeKind::kind,
#include "lamella/graph/hlo/attribute.def"
};
constexpr NameTable<256, kAttributeNames.size()> kAttributes(kAttributeNames);

}  // namespace

std::string_view opcode_name(Opcode opcode) { return kOpcodes.name(static_cast<size_t>(opcode)); }
std::optional<Opcode> opcode_from_name(std::string_view name) {
  int found = kOpcodes.find(name);
  if (found < 0) return std::nullopt;
  return static_cast<Opcode>(found);
}
int opcode_operands(Opcode opcode) { return kOpcodeOperands[static_cast<size_t>(opcode)]; }
Family opcode_family(Opcode opcode) { return kOpcodeFamilies[static_cast<size_t>(opcode)]; }

std::string_view attribute_name(AttributeKey key) {
  return kAttributes.name(static_cast<size_t>(key));
}
std::optional<AttributeKey> attribute_from_name(std::string_view name, Opcode opcode) {
  int found = kAttributes.find(name);
  if (found < 0) return std::nullopt;
  auto key = static_cast<AttributeKey>(found);
  bool of_pairs = opcode == Opcode::CollectivePermute || opcode == Opcode::CollectivePermuteStart;
  if (key == AttributeKey::SliceSizes && of_pairs) return AttributeKey::SliceSizesOfPairs;
  return key;
}
AttributeKind attribute_kind(AttributeKey key) { return kAttributeKinds[static_cast<size_t>(key)]; }

}  // namespace lamella::hlo
