// Reads `pointwise` fields, and generates meta and impl of their operators.
#include "codegen/pointwise.h"

#include <algorithm>
#include <array>

#include "codegen/cpp.h"
#include "codegen/words.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {
namespace {

struct RuleWord {
  std::string_view word;
  Pointwise::Rule rule;
  std::string_view flags;
};
constexpr std::array<RuleWord, 4> kRules = {{
    {"same", Pointwise::Rule::kSame, "kPointwise"},
    {"float", Pointwise::Rule::kFloat, "kPointwiseFloat"},
    {"bool", Pointwise::Rule::kBool, "kComparison"},
    {"own", Pointwise::Rule::kOwn, ""},
}};

bool is_number(const Argument& argument) { return argument.type.kind() == TypeKind::kScalar; }
bool is_operand(const Argument& argument) {
  return argument.type.is_tensor() ||
         (is_number(argument) && (argument.name == "self" || argument.name == "other"));
}

// Why no kernel can be made for the signature; empty if one can.
std::string misfit(const FunctionSchema& schema) {
  std::size_t tensors = 0;
  std::size_t numbers = 0;
  for (const Argument& argument : schema.arguments) {
    if (argument.is_out()) continue;
    if (!argument.type.is_tensor() && !is_number(argument)) {
      return "reads tensors and numbers, not '" + argument.type.str() + " " + argument.name + "'";
    }
    if (argument.type.is_tensor()) ++tensors;
    if (is_number(argument) && is_operand(argument)) ++numbers;
  }
  const bool fits = numbers == 0 ? tensors >= 1 && tensors <= 3 : numbers == 1 && tensors == 1;
  if (!fits) return "reads one to three tensors, or a tensor and a number";
  if (schema.returns.size() != 1 || !schema.returns[0].type.is_tensor()) return "returns a tensor";
  return "";
}

}  // namespace

std::optional<Pointwise> read_pointwise(const YamlNode& value, const FunctionSchema& schema,
                                        Diagnostics& diagnostics) {
  const std::string text = value.is_scalar() ? value.text : "";
  const std::size_t space = text.find(' ');
  const std::string word = text.substr(0, space);
  const auto rule = std::ranges::find(kRules, word, &RuleWord::word);
  if (rule == kRules.end()) {
    std::array<std::string_view, kRules.size()> words;
    std::ranges::transform(kRules, words.begin(), &RuleWord::word);
    diagnostics.add(value.where,
                    "'pointwise' expects same, float, bool or own, and the loop's name behind it "
                    "where it is not the operator's, got " +
                        (value.is_null() ? "nothing" : value.describe()) +
                        did_you_mean(word, words));
    return std::nullopt;
  }
  Pointwise read{rule->rule, ""};
  const std::string loop = space == std::string::npos ? "" : text.substr(space + 1);
  if (read.rule == Pointwise::Rule::kOwn) {
    if (loop.empty()) return read;
    diagnostics.add(value.locate(space + 1),
                    "'pointwise: own' names no loop: the kernel that is written by hand does");
    return std::nullopt;
  }
  if (!loop.empty() && !is_identifier(loop)) {
    diagnostics.add(value.locate(space + 1),
                    "'pointwise' expects the name of one loop, got '" + loop + "'");
    return std::nullopt;
  }
  if (const std::string problem = misfit(schema); !problem.empty()) {
    diagnostics.add(value.where, "a kernel that 'pointwise' makes " + problem +
                                     "; write 'pointwise: own', and meta and impl by hand");
    return std::nullopt;
  }
  read.loop = loop.empty() ? schema.name.base_name() : loop;
  return read;
}

void imply_structured(NativeFunction& function, bool has_dispatch) {
  function.structured = true;
  function.structured_inherits = "TensorIteratorBase";
  function.device_check = DeviceCheck::kNone;
  if (has_dispatch) return;
  const OperatorName& name = function.schema.name;
  const bool overloaded = function.kind() == SchemaKind::kFunctional && !name.overload_name.empty();
  function.dispatch.emplace_back(
      "CPU", Kernel{"", name.base_name() + (overloaded ? "_" + name.overload_name : "") + "_cpu",
                    function.where, function.where});
}

std::string pointwise_definitions(const Model& model, const EmitOptions& options) {
  std::string text;
  for (const NativeFunction& f : model.functions) {
    if (!f.pointwise || f.pointwise->rule == Pointwise::Rule::kOwn) continue;
    std::vector<std::string> meta, impl, operands, names, numbers;
    std::string number;
    for (const Parameter& p : functional_parameters(f)) {
      const bool operand = is_operand(*p.argument);
      meta.push_back(operand ? p.declared(false) : p.type);
      impl.push_back(operand ? p.type : p.declared(false));
      if (!operand) {
        numbers.push_back(p.name);
      } else if (is_number(*p.argument)) {
        number = p.name;
      } else {
        operands.push_back(p.name);
        names.push_back(in_quotes(p.argument->name));
      }
    }
    const std::string flags(std::ranges::find(kRules, f.pointwise->rule, &RuleWord::rule)->flags);
    std::string build;
    if (!number.empty()) {
      put(build, "build_with_number(", operands[0], ", ", number, ", ", flags,
          number == "self" ? ", true);" : ");");
    } else if (operands.size() == 1) {
      put(build, "build_unary(", operands[0], ", ", flags, ");");
    } else {
      const bool binary = operands.size() == 2;
      const bool usual = binary && names[0] == "\"self\"" && names[1] == "\"other\"";
      if (!usual) {
        put(build, "static constexpr const char* kNames[] = {", join(names, ", "), "};\n  ");
      }
      put(build, binary ? "build_binary(" : "build_ternary(", join(operands, ", "), ", ");
      // The names of a binary operator's operands have a default.
      put(build, binary ? flags + (usual ? "" : ", kNames") : "kNames, " + flags, ");");
    }
    const std::string name = structured_name(f, model);
    put(text, "void lamella::meta::structured_", name, "::meta(", join(meta, ", "), ") {\n  ",
        build, "\n}\n");
    for (const auto& [key, kernel] : structured_kernels(f)) {
      std::string given = "nullptr";
      put(text, "void ", kernel_namespace(kernel, f, options), "::structured_", kernel.name,
          "::impl(", join(impl, ", "), ", const Tensor&) {\n");
      if (numbers.size() == 1) {
        given = "&" + numbers[0];
      } else if (!numbers.empty()) {
        put(text, "  const Scalar numbers[] = {", join(numbers, ", "), "};\n");
        given = "numbers";
      }
      put(text, "  ::lamella::native::pointwise_loop<", in_quotes(f.pointwise->loop),
          ">(device_type(), *this, ", given, ");\n}\n");
    }
  }
  return text;
}

}  // namespace lamella::codegen
