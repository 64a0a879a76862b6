// Writes the graph page: its data as JSON, and a list for browsers without JavaScript.
#include "lamella/graph/view/html.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/view/cost.h"
#include "lamella/graph/view/families.h"
#include "lamella/graph/view/json_text.h"
#include "lamella/graph/view/memory.h"
#include "lamella/graph/view/page.inc"
#include "lamella/graph/view/source.h"

namespace lamella::hlo {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestLiteral = 200, kLongestAttribute = 2000;

std::string escaped(std::string_view text) {
  std::string made;
  for (char c : text) {
    switch (c) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '"':
        made += "&quot;";
        break;
      default:
        made += c;
    }
  }
  return made;
}
std::string cut(std::string text, size_t letters) {
  if (text.size() > letters) text = text.substr(0, letters - 3) + "...";
  return text;
}
// Formats a number with a prefix: "1.50 M".
std::string amount(double n, const char* unit) {
  static constexpr const char* kSteps[] = {"", "k", "M", "G", "T", "P"};
  int step = 0;
  for (; n >= 1000 && step < 5; ++step) n /= 1000;
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer),
                n == static_cast<double>(static_cast<int64_t>(n)) ? "%.0f" : "%.2f", n);
  std::string made = buffer;
  if (kSteps[step][0] != '\0' || unit[0] != '\0') made += str(" ", kSteps[step], unit);
  return made;
}

// The beginning of a literal's text; avoids formatting all of a large literal.
std::string literal_text(const Literal& literal) {
  if (literal.shape().is_array() && literal.shape().elements() > 10000) {
    return str(literal.shape().to_string(false), " of ", literal.shape().elements(), " values");
  }
  return cut(literal.to_string(), kLongestLiteral);
}

std::string title_of(const Instruction& i) {
  std::string made(opcode_name(i.opcode));
  switch (i.opcode) {
    case Opcode::Parameter:
      return str(made, " ", i.parameter_number);
    case Opcode::GetTupleElement:
      return str(made, " ", i.integer(AttributeKey::Index));
    case Opcode::Compare:
      return str(made, " ", i.text(AttributeKey::Direction));
    case Opcode::CustomCall:
      return std::string(i.text(AttributeKey::CustomCallTarget));
    case Opcode::Fusion:
      if (i.has(AttributeKey::Kind)) return str(made, " ", i.text(AttributeKey::Kind));
      return made;
    default:
      return made;
  }
}

class Page {
 public:
  explicit Page(const Module& module) : module_(module), costs_(module), sources_(module) {
    for (size_t c = 0; c < module.computations.size(); ++c) numbers_[module.computations[c]] = c;
    if (module.is_scheduled) memory_.emplace(module);
  }

  std::string run() {
    std::string name = escaped(module_.name);
    std::string text =
        str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width\">\n<title>", name,
            "</title>\n<style>\n", kPageCss, "</style>\n</head>\n<body>\n");
    text += str(
        "<div class=\"app\">\n<header><h1>", name, "</h1>\n",
        "<input id=\"search\" type=\"search\" placeholder=\"search  ( / )\" "
        "aria-label=\"search\">\n",
        "<span id=\"found\"></span><span class=\"space\"></span>\n",
        "<select id=\"colour\" aria-label=\"colour\"><option value=\"family\">colour: "
        "kind</option>",
        "<option value=\"flops\">colour: operations</option>",
        "<option value=\"bytes\">colour: bytes moved</option></select>\n",
        "<button id=\"expand\">open all</button><button id=\"collapse\">close all</button>\n",
        "<button id=\"farther\" title=\"zoom out (-)\">−</button>",
        "<button id=\"nearer\" title=\"zoom in (+)\">+</button>",
        "<button id=\"fit\" title=\"whole picture (f)\">fit</button>\n",
        "<button id=\"listing\">list</button><button id=\"theme\">light / dark</button></header>\n",
        "<div id=\"stage\"></div>\n<aside id=\"facts\" aria-live=\"polite\"></aside>\n",
        "<div id=\"tip\" role=\"tooltip\"></div>\n<template id=\"overview\">");
    text += overview();
    text += "</template>\n<main id=\"list\">\n";
    text += list();
    text += "</main>\n</div>\n<script type=\"application/json\" id=\"data\">";
    text += data();
    text += str("</script>\n<script>\n", kPageLayoutJs, kPageJs, "</script>\n</body>\n</html>\n");
    return text;
  }

 private:
  // Escapes the JSON, because a script element must not contain its own end tag.
  static std::string safe(const Json& json) {
    std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace), made;
    for (char c : text) {
      if (c == '<') {
        made += "\\u003c";
      } else {
        made += c;
      }
    }
    return made;
  }
  std::string data() const {
    Json families = Json::array();
    for (int f = 0; f < kFamilyCount; ++f) {
      const FamilyLook& look = look_of(static_cast<Family>(f));
      families.push_back({{"name", look.name}, {"fill", look.fill}, {"stroke", look.stroke}});
    }
    Json computations = Json::array();
    for (const Computation* one : module_.computations) {
      Json instructions = Json::array();
      for (const Instruction* i : one->instructions) instructions.push_back(data(*i));
      computations.push_back({{"name", std::string(one->name)},
                              {"root", one->root->index},
                              {"instructions", std::move(instructions)}});
    }
    return safe({{"entry", numbers_.at(module_.entry)},
                 {"families", std::move(families)},
                 {"computations", std::move(computations)}});
  }
  // The fields are: n name, o opcode, t title, s and S shape without and with layouts, f family,
  // i operands, c called computations with their roles, v value of a scalar constant, l value of
  // another constant, m op_name of the metadata, w source, a attributes, b bytes of the result,
  // p bytes in use during the instruction, k flops, transcendentals and bytes moved.
  Json data(const Instruction& i) const {
    Json made = {{"n", std::string(i.name)},  {"o", std::string(opcode_name(i.opcode))},
                 {"t", title_of(i)},          {"s", i.shape->to_string(false)},
                 {"S", i.shape->to_string()}, {"f", static_cast<int>(opcode_family(i.opcode))},
                 {"b", i.shape->bytes()}};
    const Cost& cost = costs_.of(i);
    if (int64_t bytes = bytes_during(i); bytes != 0) made["p"] = bytes;
    made["k"] = {cost.flops, cost.transcendentals, cost.bytes};
    for (const Instruction* operand : i.operands) made["i"].push_back(operand->index);
    for (const Attribute& a : i.attributes) {
      std::string name(attribute_name(a.key));
      switch (attribute_kind(a.key)) {
        case AttributeKind::Computation:
          made["c"].push_back({name, numbers_.at(a.computation)});
          continue;
        case AttributeKind::Computations:
          for (size_t n = 0; n < a.computations().size(); ++n) {
            made["c"].push_back({str(name, " ", n), numbers_.at(a.computations()[n])});
          }
          continue;
        default:
          break;
      }
      if (a.key == AttributeKey::Metadata) {
        std::string operation = op_name(i), place = sources_.place(i);
        if (!operation.empty()) made["m"] = operation;
        if (!place.empty()) made["w"] = place;
        continue;
      }
      made["a"].push_back({name, cut(to_string(a), kLongestAttribute)});
    }
    if (i.opcode == Opcode::Constant) {
      made[i.shape->is_scalar() ? "v" : "l"] = literal_text(*i.literal);
    }
    return made;
  }

  int64_t bytes_during(const Instruction& i) const { return memory_ ? memory_->during(i) : 0; }

  std::string facts() const {
    const Cost& cost = costs_.of(*module_.entry);
    std::string text = str("<h2 class=\"mono\">", escaped(module_.name), "</h2><table>");
    auto row = [&](const char* name, const std::string& value) {
      text += str("<tr><th>", name, "<td>", escaped(value));
    };
    row("instructions", str(module_.instruction_count()));
    row("computations", str(module_.computations.size()));
    row("flops", amount(cost.flops, ""));
    row("transcendentals", amount(cost.transcendentals, ""));
    row("bytes moved", amount(cost.bytes, "B"));
    if (memory_) row("peak memory", amount(static_cast<double>(memory_->peak()), "B"));
    row("result", module_.entry->root->shape->to_string(false));
    return text + "</table>\n";
  }
  std::string overview() const {
    std::string text = facts() + "<p>";
    for (int f = 0; f < kFamilyCount; ++f) {
      const FamilyLook& look = look_of(static_cast<Family>(f));
      text += str("<span class=\"swatch\" style=\"background:", look.fill,
                  ";border-color:", look.stroke, "\"></span>", look.name, "<br>");
    }
    return text +
           "</p>\n<p>Click a box for its facts, its arrow or twice to open it. Drag to move, turn "
           "the "
           "wheel to zoom. Loops count once in the sums.</p>";
  }

  std::string list() const {
    std::string text = facts();
    for (size_t c = module_.computations.size(); c-- > 0;) {
      const Computation& one = *module_.computations[c];
      const Cost& sum = costs_.of(one);
      text += str("<details id=\"c", c, "\"", module_.entry == &one ? " open" : "",
                  "><summary><code>", module_.entry == &one ? "ENTRY " : "", escaped(one.name), " ",
                  escaped(cut(one.signature(), 300)), "</code> <span class=\"cost\">",
                  amount(sum.flops + sum.transcendentals, "op"), ", ", amount(sum.bytes, "B"),
                  "</span></summary>\n<ol>\n");
      for (const Instruction* i : one.instructions) text += item(*i, c);
      text += "</ol></details>\n";
    }
    return text;
  }
  std::string item(const Instruction& i, size_t c) const {
    std::string text =
        str("<li id=\"c", c, "-", i.index, "\"><code>", i.parent->root == &i ? "ROOT " : "",
            escaped(i.name), " = ", escaped(i.shape->to_string()), " ", opcode_name(i.opcode), "(");
    if (i.opcode == Opcode::Constant) text += escaped(literal_text(*i.literal));
    if (i.opcode == Opcode::Parameter) text += str(i.parameter_number);
    for (size_t n = 0; n < i.operands.size(); ++n) {
      text += str(n == 0 ? "" : ", ", "<a href=\"#c", c, "-", i.operands[n]->index, "\">",
                  escaped(i.operands[n]->name), "</a>");
    }
    text += ")";
    for (const Attribute& a : i.attributes) {
      if (a.key == AttributeKey::Metadata) continue;
      std::string value = escaped(cut(to_string(a), 300));
      if (attribute_kind(a.key) == AttributeKind::Computation) {
        value = str("<a href=\"#c", numbers_.at(a.computation), "\">", value, "</a>");
      }
      text += str(", ", attribute_name(a.key), "=", value);
    }
    text += "</code>";
    const Cost& cost = costs_.of(i);
    if (cost.flops + cost.transcendentals > 0 || cost.bytes > 0) {
      text += str(" <span class=\"cost\">", amount(cost.flops + cost.transcendentals, "op"), ", ",
                  amount(cost.bytes, "B"), "</span>");
    }
    if (int64_t bytes = bytes_during(i); bytes != 0) {
      text +=
          str(" <span class=\"cost\">", amount(static_cast<double>(bytes), "B"), " in use</span>");
    }
    if (std::string place = sources_.place(i); !place.empty()) {
      text += str(" <span class=\"cost\">", escaped(place), "</span>");
    }
    return text + "\n";
  }

  const Module& module_;
  Costs costs_;
  Sources sources_;
  std::optional<Memory> memory_;  // set for scheduled modules
  std::unordered_map<const Computation*, size_t> numbers_;
};

}  // namespace

std::string to_html(const Module& module) { return Page(module).run(); }

}  // namespace lamella::hlo
