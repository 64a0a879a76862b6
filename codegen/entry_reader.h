// One entry of native_functions.yaml, read field by field. Internal to the generator.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "codegen/model.h"

namespace lamella::codegen {

// An entry with the places of its fields, for checks that compare several.
struct LocatedEntry {
  NativeFunction function;
  YamlPtr func;                           // the signature's node
  std::map<std::string, Location> keys;   // the place of each field's name
  std::map<std::string, YamlPtr> values;  // the value of each field

  bool has(const std::string& field) const { return keys.contains(field); }
  // The value of a field that is there; the signature otherwise.
  Location place(const std::string& field) const;
  // The place of a byte of the signature.
  Location in_func(std::uint32_t offset) const { return func->locate(offset); }
};

// Reads `node`; every error goes to `diagnostics`. Nothing when it has no readable signature.
std::optional<LocatedEntry> read_entry(const YamlPtr& node, const ModelOptions& options,
                                       const std::set<std::string>& tags, Diagnostics& diagnostics);

// Checks one entry, once all its fields are known.
void check_entry(const LocatedEntry& entry, Diagnostics& diagnostics);

// Checks that involve all entries. `model` holds their functions and groups.
void check_entries(const std::deque<LocatedEntry>& entries, const Model& model,
                   Diagnostics& diagnostics);

}  // namespace lamella::codegen
