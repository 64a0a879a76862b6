// The batching rules by name. Families of built-in operators have tables of their own in
// rules_*.cpp.
#include "lamella/layers/vmap/rule.h"
#include "lamella/layers/vmap/rules_table.h"

namespace lamella::vmap {
namespace {

struct NamedRule {
  std::string_view name;
  Rule rule;
};
constexpr NamedRule kRules[] = {
    {"pointwise", &pointwise_rule}, {"reduction", &reduction_rule}, {"composite", &composite_rule},
    {"loop", &loop_rule},           {"random", &random_rule},
};

}  // namespace

Rule find_rule(std::string_view name) {
  for (const NamedRule& rule : kRules) {
    if (rule.name == name) return rule.rule;
  }
  return find_operator_rule(name);
}

}  // namespace lamella::vmap
