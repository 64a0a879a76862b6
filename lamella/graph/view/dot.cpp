// Writes modules as Graphviz text.
#include "lamella/graph/view/dot.h"

#include <unordered_map>

#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/view/families.h"

namespace lamella::hlo {
namespace {

std::string quoted(std::string_view text) {
  std::string made = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    if (c == '\n') {
      made += "\\n";
    } else {
      made += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
  }
  return made + "\"";
}
std::string cut(std::string_view text, size_t letters) {
  return text.size() <= letters ? std::string(text) : str(text.substr(0, letters - 3), "...");
}

class Writer {
 public:
  explicit Writer(const Module& module) : module_(module) {
    for (size_t c = 0; c < module.computations.size(); ++c) {
      numbers_[module.computations[c]] = c;
      for (const Instruction* i : module.computations[c]->instructions) {
        for_each_called(*i, [&](const Computation& called) { ++callers_[&called]; });
      }
    }
  }

  std::string run() {
    out_ += "digraph " + quoted(module_.name) + " {\n";
    out_ +=
        "  compound=true;\n"
        "  node [shape=box, style=\"filled,rounded\", fontname=\"monospace\", fontsize=10];\n"
        "  edge [fontname=\"monospace\", fontsize=8, color=\"#777777\"];\n";
    for (const Computation* one : module_.computations) {
      if (!is_inside_fusion(*one)) computation(*one, 1);
    }
    out_ += edges_;
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  // The computation of a fusion that has no other callers; otherwise null.
  const Computation* fused(const Instruction& i) const {
    if (i.opcode != Opcode::Fusion) return nullptr;
    const Computation* called = i.computation(AttributeKey::Calls);
    return called != nullptr && callers_.at(called) == 1 ? called : nullptr;
  }
  bool is_inside_fusion(const Computation& computation) {
    if (inside_.empty()) {
      for (const Computation* one : module_.computations) inside_[one] = false;
      for (const Computation* one : module_.computations) {
        for (const Instruction* i : one->instructions) {
          if (const Computation* called = fused(*i)) inside_[called] = true;
        }
      }
    }
    return inside_.at(&computation);
  }

  std::string id(const Instruction& i) const {
    return str("i", numbers_.at(i.parent), "_", i.index);
  }
  std::string cluster(const Computation& one) const { return str("cluster_", numbers_.at(&one)); }
  // The instruction whose box an edge starts at: for a fusion that is drawn expanded, its root.
  const Instruction& source(const Instruction& i) const {
    const Computation* inner = fused(i);
    return inner != nullptr ? source(*inner->root) : i;
  }
  void line(int depth, const std::string& text) {
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }
  void edge(const Instruction& from, const Instruction& to, const std::string& more) {
    edges_ += str("  ", id(source(from)), " -> ", id(to),
                  " [label=", quoted(short_shape(*from.shape, 32)), more, "];\n");
  }

  void computation(const Computation& one, int depth) {
    line(depth, str("subgraph ", cluster(one), " {"));
    std::string label = str(module_.entry == &one ? "ENTRY " : "", one.name);
    line(depth + 1, str("label=", quoted(label), "; labeljust=l; fontname=\"monospace\"; ",
                        "fontsize=11; style=rounded; color=\"#999999\";"));
    contents(one, depth + 1);
    line(depth, "}");
  }
  void contents(const Computation& one, int depth) {
    for (const Instruction* i : one.instructions) {
      if (const Computation* inner = fused(*i)) {
        const FamilyLook& look = look_of(Family::Fusion);
        line(depth, str("subgraph ", cluster(*inner), " {"));
        line(depth + 1, str("label=", quoted(str(i->name, " = fusion ", inner->name)),
                            "; labeljust=l; fontname=\"monospace\"; fontsize=10; "
                            "style=\"filled,rounded\"; fillcolor=\"",
                            look.fill, "\"; color=\"", look.stroke, "\";"));
        contents(*inner, depth + 1);
        line(depth, "}");
        for (size_t n = 0; n < i->operands.size() && n < inner->parameters.size(); ++n) {
          edge(*i->operands[n], *inner->parameters[n], "");
        }
        continue;
      }
      node(*i, depth, i == one.root);
    }
  }
  void node(const Instruction& i, int depth, bool root) {
    const FamilyLook& look = look_of(opcode_family(i.opcode));
    std::string label = str(opcode_name(i.opcode), "\n", i.name, "\n", short_shape(*i.shape));
    if (i.opcode == Opcode::Constant && i.shape->is_scalar()) {
      label += "\n" + i.literal->to_string();
    } else if (i.opcode == Opcode::Parameter) {
      label = str("parameter ", i.parameter_number, "\n", i.name, "\n", short_shape(*i.shape));
    } else if (i.opcode == Opcode::CustomCall) {
      label += str("\n", cut(i.text(AttributeKey::CustomCallTarget), 40));
    }
    line(depth, str(id(i), " [label=", quoted(label), ", fillcolor=\"", look.fill, "\", color=\"",
                    look.stroke, "\"", root ? ", penwidth=2" : "",
                    ", tooltip=", quoted(cut(to_string(i), 400)), "];"));
    for (size_t n = 0; n < i.operands.size(); ++n) {
      edge(*i.operands[n], i,
           i.operands.size() > 1 ? str(", headlabel=\"", n, "\"") : std::string());
    }
    for_each_called(i, [&](const Computation& called) {
      edges_ += str("  ", id(i), " -> ", id(source(*called.instructions.front())),
                    " [style=dashed, lhead=", cluster(called), ", color=\"#bbbbbb\"];\n");
    });
    if (const Attribute* before = i.find(AttributeKey::ControlPredecessors)) {
      for (const Instruction* one : before->instructions()) {
        edges_ +=
            str("  ", id(source(*one)), " -> ", id(i), " [style=dotted, color=\"#a8362a\"];\n");
      }
    }
  }

  const Module& module_;
  std::unordered_map<const Computation*, size_t> numbers_;
  std::unordered_map<const Computation*, int> callers_;
  std::unordered_map<const Computation*, bool> inside_;
  std::string out_, edges_;
};

}  // namespace

std::string to_dot(const Module& module) { return Writer(module).run(); }

}  // namespace lamella::hlo
