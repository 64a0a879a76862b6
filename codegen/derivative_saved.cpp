// Determines the values of the forward call that backward formulas need.
#include <algorithm>

#include "codegen/derivatives.h"
#include "lamella/abi/autograd.h"

namespace lamella::codegen {

std::vector<int> saved_for(Attribute attribute) {
  switch (attribute) {
    case Attribute::kValue:
      return {LAMELLA_SAVE_VALUE};
    case Attribute::kSizes:
    case Attribute::kSize:
      return {LAMELLA_SAVE_SIZES};
    case Attribute::kStrides:
    case Attribute::kStride:
      return {LAMELLA_SAVE_STRIDES};
    case Attribute::kDtype:
      return {LAMELLA_SAVE_DTYPE};
    case Attribute::kDevice:
      return {LAMELLA_SAVE_DEVICE};
    case Attribute::kOptions:
      return {LAMELLA_SAVE_DTYPE, LAMELLA_SAVE_DEVICE};
    case Attribute::kLayout:
      return {LAMELLA_SAVE_META};
    case Attribute::kDim:
      return {LAMELLA_SAVE_DIM};
    case Attribute::kNumel:
      return {LAMELLA_SAVE_NUMEL};
    case Attribute::kOffset:
      return {LAMELLA_SAVE_STORAGE_OFFSET};
    case Attribute::kGeometry:
      return {LAMELLA_SAVE_SIZES, LAMELLA_SAVE_STRIDES, LAMELLA_SAVE_STORAGE_OFFSET};
    case Attribute::kZeros:
      return {LAMELLA_SAVE_SIZES, LAMELLA_SAVE_DTYPE, LAMELLA_SAVE_DEVICE};
    case Attribute::kDefined:
      return {LAMELLA_SAVE_DEFINED};
    case Attribute::kCount:
      return {LAMELLA_SAVE_COUNT};
  }
  return {};
}

std::vector<SavedItem> saved_items(const DerivativeTable& table) {
  std::vector<SavedItem> items;
  for (const Formula& formula : table.backward) {
    std::uint64_t used_by = 0;
    for (const std::size_t argument : formula.targets) {
      const auto slot = std::ranges::lower_bound(table.slots, argument) - table.slots.begin();
      used_by |= std::uint64_t{1} << slot;
    }
    for (const FormulaUse& use : formula.uses) {
      for (const int what : saved_for(use.attribute)) {
        const SavedItem wanted{what, use.role == FormulaUse::Role::kReturn, use.index, used_by};
        const auto known = std::ranges::find_if(items, [&](const SavedItem& item) {
          return item.what == wanted.what && item.is_return == wanted.is_return &&
                 item.index == wanted.index;
        });
        if (known == items.end()) {
          items.push_back(wanted);
        } else {
          known->used_by |= used_by;
        }
      }
    }
  }
  return items;
}

namespace {

std::string names_of(const Formula& formula) {
  std::string text;
  for (const char c : formula.names) {
    if (c != ' ' && c != '\t') text += c;
    if (c == ',') text += ' ';
  }
  return text;
}

// Lists each used value once, in order of first use: as written in forward mode, else as saved.
std::string uses_of(const Formula& formula, const FunctionSchema& schema, bool forward) {
  std::vector<std::string> parts;
  for (const FormulaUse& use : formula.uses) {
    const Argument& one = use.role == FormulaUse::Role::kReturn ? schema.returns[use.index]
                                                                : schema.arguments[use.index];
    const bool list = one.type.holds_tensor() && one.type.without_optional().is_list();
    const KnownName name{use.name, list ? NameKind::kTensorList : NameKind::kTensor};
    std::string part = forward ? use.name : describe(name, use.attribute);
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::string list_saved(const DerivativeModel& model) {
  std::string out;
  for (const Derivative& entry : model.entries) {
    const FunctionSchema& schema = entry.function->schema;
    for (const DerivativeTable& table : entry.tables) {
      std::string start = entry.function->full_name();
      if (table.key != "Default") start += " [" + table.key + "]";
      if (!table.node.empty()) start += " " + table.node;
      start += ": ";
      if (table.backward.empty() && table.forward.empty()) out += start + "not differentiable\n";
      for (const bool forward : {false, true}) {
        for (const Formula& formula : forward ? table.forward : table.backward) {
          const std::string line = start + names_of(formula);
          switch (formula.kind) {
            case Formula::Kind::kNotImplemented:
              out += line +
                     (formula.key == nullptr ? " is without a formula\n" : " is not implemented\n");
              break;
            case Formula::Kind::kAutoLinear:
              out += line + " is auto_linear\n";
              break;
            case Formula::Kind::kAutoElementWise:
              out += line + " is auto_element_wise\n";
              break;
            case Formula::Kind::kExpression:
              out += line + (forward ? " uses " : " saves ") + uses_of(formula, schema, forward) +
                     "\n";
          }
        }
      }
    }
  }
  return out;
}

}  // namespace lamella::codegen
