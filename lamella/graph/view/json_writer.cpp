// Writes modules as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lamella/graph/view/cost.h"
#include "lamella/graph/view/json.h"
#include "lamella/graph/view/json_text.h"
#include "lamella/graph/view/source.h"

namespace lamella::hlo {
namespace {

using Json = nlohmann::ordered_json;

Json numbers(std::span<const int64_t> values) {
  return Json(std::vector<int64_t>(values.begin(), values.end()));
}

Json value_of(const Attribute& a) {
  switch (attribute_kind(a.key)) {
    case AttributeKind::Integer:
      return a.integer;
    case AttributeKind::Boolean:
      return a.integer != 0;
    case AttributeKind::Real:
      // JSON has no infinities.
      if (!std::isfinite(a.real)) return to_string(a);
      return a.real;
    case AttributeKind::Integers:
      return numbers(a.integers());
    case AttributeKind::Word:
    case AttributeKind::String:
    case AttributeKind::Text:
      return json_text(a.text());
    case AttributeKind::Window: {
      Json list = Json::array();
      for (const WindowDimension& d : a.window()) {
        list.push_back({{"size", d.size},
                        {"stride", d.stride},
                        {"padding_low", d.padding_low},
                        {"padding_high", d.padding_high},
                        {"window_dilation", d.window_dilation},
                        {"base_dilation", d.base_dilation},
                        {"reversal", d.reversal}});
      }
      return list;
    }
    case AttributeKind::DimLabels:
      return to_string(a);
    case AttributeKind::Padding: {
      Json list = Json::array();
      for (const PaddingDimension& d : a.padding()) {
        list.push_back({{"low", d.low}, {"high", d.high}, {"interior", d.interior}});
      }
      return list;
    }
    case AttributeKind::Slices: {
      Json list = Json::array();
      for (const SliceDimension& d : a.slices()) {
        list.push_back({{"start", d.start}, {"limit", d.limit}, {"stride", d.stride}});
      }
      return list;
    }
    case AttributeKind::Computation:
      return json_text(a.computation->name);
    case AttributeKind::Computations: {
      Json list = Json::array();
      for (const Computation* one : a.computations()) list.push_back(json_text(one->name));
      return list;
    }
    case AttributeKind::Instructions: {
      Json list = Json::array();
      for (const Instruction* one : a.instructions()) list.push_back(json_text(one->name));
      return list;
    }
    case AttributeKind::Shapes: {
      Json list = Json::array();
      for (const Shape* one : a.shapes()) list.push_back(one->to_string());
      return list;
    }
    case AttributeKind::ShapeOf:
      return a.shape->to_string();
    case AttributeKind::Aliasing: {
      Json list = Json::array();
      for (const OperandAlias& one : a.aliases()) {
        list.push_back({{"output", one.output},
                        {"operand", one.operand},
                        {"operand_index", one.operand_index}});
      }
      return list;
    }
  }
  return nullptr;
}

Json json_of(const Instruction& i, const Cost& cost) {
  Json made = {{"name", json_text(i.name)},
               {"opcode", std::string(opcode_name(i.opcode))},
               {"shape", i.shape->to_string()}};
  if (!i.operands.empty()) {
    Json operands = Json::array();
    for (const Instruction* operand : i.operands) operands.push_back(json_text(operand->name));
    made["operands"] = std::move(operands);
  }
  if (i.opcode == Opcode::Parameter) made["parameter_number"] = i.parameter_number;
  if (i.opcode == Opcode::Constant) made["literal"] = i.literal->to_string();
  if (!i.attributes.empty()) {
    Json attributes = Json::object();
    for (const Attribute& a : i.attributes) {
      attributes[std::string(attribute_name(a.key))] = value_of(a);
    }
    made["attributes"] = std::move(attributes);
  }
  made["bytes"] = i.shape->bytes();
  if (cost.flops + cost.transcendentals + cost.bytes > 0) {
    made["cost"] = {
        {"flops", cost.flops}, {"transcendentals", cost.transcendentals}, {"bytes", cost.bytes}};
  }
  if (i.has(AttributeKey::Metadata)) {
    Json fields = Json::object();
    for (const auto& [name, value] : metadata_fields(i.text(AttributeKey::Metadata))) {
      fields[name] = json_text(value);
    }
    made["metadata"] = std::move(fields);
  }
  return made;
}

Json json_of(const Module& module) {
  Json made = {{"format", "lamella.hlo"},
               {"version", 1},
               {"name", json_text(module.name)},
               {"entry", json_text(module.entry->name)}};
  if (module.is_scheduled) made["is_scheduled"] = true;
  if (module.entry_result_layout != nullptr) {
    Json parameters = Json::array();
    for (const Shape* one : module.entry_parameter_layouts) parameters.push_back(one->to_string());
    made["entry_layout"] = {{"parameters", std::move(parameters)},
                            {"result", module.entry_result_layout->to_string()}};
  }
  for (const InputOutputAlias& one : module.input_output_aliases) {
    made["input_output_alias"].push_back({{"output", one.output},
                                          {"parameter", one.parameter},
                                          {"parameter_index", one.parameter_index},
                                          {"kind", one.must ? "must-alias" : "may-alias"}});
  }
  for (const auto& [name, value] : module.attributes) {
    made["attributes"].push_back({json_text(name), json_text(value)});
  }
  Costs costs(module);
  Json computations = Json::array();
  for (const Computation* computation : module.computations) {
    Json one = {{"name", json_text(computation->name)},
                {"root", json_text(computation->root->name)},
                {"signature", json_text(computation->signature())}};
    if (!computation->attributes.empty()) one["attributes"] = json_text(computation->attributes);
    Json instructions = Json::array();
    for (const Instruction* i : computation->instructions) {
      instructions.push_back(json_of(*i, costs.of(*i)));
    }
    one["instructions"] = std::move(instructions);
    computations.push_back(std::move(one));
  }
  made["computations"] = std::move(computations);
  return made;
}

}  // namespace

nlohmann::ordered_json json_text(std::string_view text) {
  Json made = std::string(text);
  auto ascii = [](char c) { return static_cast<unsigned char>(c) < 128; };
  if (std::all_of(text.begin(), text.end(), ascii)) return made;
  try {
    made.dump();
    return made;
  } catch (const Json::exception&) {
    std::vector<int> bytes;
    for (char c : text) bytes.push_back(static_cast<unsigned char>(c));
    return {{"bytes", bytes}};
  }
}

std::string to_json(const Module& module, int indent) { return json_of(module).dump(indent); }

}  // namespace lamella::hlo
