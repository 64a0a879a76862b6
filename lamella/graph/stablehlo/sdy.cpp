// Reading Shardy: its attributes in bytecode, its shardings, and its operations.
#include "lamella/graph/stablehlo/sdy.h"

#include <algorithm>
#include <numeric>

namespace lamella::hlo::stablehlo {

using Kind = Attribute::Kind;

// ---- Bytecode ----------------------------------------------------------------------------------

void Pool::read_sdy_attribute(Bytes& in, Attribute* made) {
  auto name = [&] {
    auto* one = arena_.make<Attribute>();
    one->kind = Kind::String;
    one->text = string(in);
    add(made, "name", one);
  };
  auto list = [&] {
    auto* one = arena_.make<Attribute>();
    read_list(in, one);
    return one;
  };
  made->kind = Kind::Dictionary;
  switch (const uint64_t code = in.number()) {
    case 0:  // axes of a manual_computation
    case 7:  // shardings
    case 16:
    case 11:  // axes
    case 12:
      return read_list(in, made);
    case 1:
      name();
      return add(made, "size", integer(in.signed_number()));
    case 2:
      add(made, "axes", list());
      return add_integers(made, "device_ids", in.signed_numbers());
    case 3:
      add(made, "pre_size", integer(in.signed_number()));
      return add(made, "size", integer(in.signed_number()));
    case 4: {
      name();
      bool has = false;
      const uint64_t part = in.flagged(&has);
      if (has) add(made, "sub_axis_info", attribute_at(in, part));
      return;
    }
    case 5: {  // axes of a dimension; whether others may join them, and a priority
      read_list(in, made);
      made->integer = in.byte();
      in.number();
      return;
    }
    case 6:
    case 15:
    case 17:
      add(made, "mesh", attribute(in));
      add(made, "dimensions", list());
      list();  // axes that the array is whole along
      if (code != 6) add(made, "unreduced", list());
      if (code == 17) in.signed_number();
      return;
    default:
      in.raw(in.left());  // rules of propagation, which are not needed
  }
}

// ---- Shardings ---------------------------------------------------------------------------------

namespace {

const Attribute* entry_of(const Attribute& of, std::string_view name) {
  for (const Named& one : of.entries) {
    if (one.name == name) return one.value;
  }
  return nullptr;
}
int64_t number_of(const Attribute& of, std::string_view name) {
  const Attribute* found = entry_of(of, name);
  return found != nullptr ? found->integer : 0;
}
std::string_view name_of(const Attribute& of) {
  const Attribute* found = entry_of(of, "name");
  return found != nullptr ? found->text : of.text;
}

Mesh mesh_of(const Attribute& stated) {
  Mesh mesh;
  if (const Attribute* axes = entry_of(stated, "axes")) {
    for (const Attribute* axis : axes->list) {
      mesh.axes.push_back({name_of(*axis), std::max<int64_t>(number_of(*axis, "size"), 1)});
    }
  }
  if (const Attribute* devices = entry_of(stated, "device_ids")) {
    for (const Attribute* one : devices->list) mesh.devices.push_back(one->integer);
  }
  int64_t count = 1;
  for (const Mesh::Axis& axis : mesh.axes) {
    count = axis.size > (int64_t{1} << 20) / count ? 0 : count * axis.size;
    if (count == 0) return Mesh();
  }
  if (static_cast<int64_t>(mesh.devices.size()) != count) {
    mesh.devices.resize(static_cast<size_t>(count));
    std::iota(mesh.devices.begin(), mesh.devices.end(), 0);
  } else if (mesh.axes.empty()) {
    mesh.is_maximal = true;
  }
  return mesh;
}

// How far one step along a part of an axis goes in the order of the mesh's devices.
struct Steps {
  int64_t count, stride;
};
Steps steps_of(const Mesh& mesh, const Attribute& axis) {
  int64_t stride = 1;
  for (size_t a = mesh.axes.size(); a-- > 0;) {
    const auto& [name, size] = mesh.axes[a];
    if (name != name_of(axis)) {
      stride *= size;
      continue;
    }
    const Attribute* part = entry_of(axis, "sub_axis_info");
    if (part == nullptr) return {size, stride};
    const int64_t before = number_of(*part, "pre_size"), own = number_of(*part, "size");
    if (before <= 0 || own <= 0 || size % (before * own) != 0) return {1, 0};
    return {own, stride * (size / (before * own))};
  }
  return {1, 0};
}

}  // namespace

Sharding sharding_of(const Attribute& stated, const Mesh& mesh,
                     const std::vector<std::string_view>* only) {
  Sharding made;
  if (mesh.is_maximal) {
    made.devices = mesh.devices;
    return made;
  }
  std::vector<Steps> used;
  auto counts = [&](const Attribute& axis) {
    return only == nullptr || std::ranges::find(*only, name_of(axis)) != only->end();
  };
  bool any = false;
  const Attribute* dimensions = entry_of(stated, "dimensions");
  if (dimensions == nullptr) return made;
  for (const Attribute* dimension : dimensions->list) {
    int64_t parts = 1;
    for (const Attribute* axis : dimension->list) {
      if (!counts(*axis)) continue;
      used.push_back(steps_of(mesh, *axis));
      parts *= used.back().count;
    }
    any |= parts != 1;
    made.parts.push_back(parts);
  }
  if (const Attribute* unreduced = entry_of(stated, "unreduced")) {
    for (const Attribute* axis : unreduced->list) {
      if (!counts(*axis)) continue;
      used.push_back(steps_of(mesh, *axis));
      made.terms *= used.back().count;
    }
  }
  if (!any && made.terms == 1) return Sharding();
  // What a part's devices have in common is where they are along its axes.
  size_t parts = 1;
  for (const Steps& steps : used) parts *= static_cast<size_t>(steps.count);
  if (parts > mesh.devices.size()) return Sharding();
  std::vector<std::vector<int64_t>> of_part(parts);
  for (size_t place = 0; place < mesh.devices.size(); ++place) {
    size_t part = 0;
    for (const Steps& steps : used) {
      const int64_t at =
          steps.stride == 0 ? 0 : static_cast<int64_t>(place) / steps.stride % steps.count;
      part = part * static_cast<size_t>(steps.count) + static_cast<size_t>(at);
    }
    of_part[part].push_back(mesh.devices[place]);
  }
  made.copies = static_cast<int64_t>(of_part[0].size()) * made.terms;
  for (const std::vector<int64_t>& one : of_part) {
    made.devices.insert(made.devices.end(), one.begin(), one.end());
  }
  return made;
}

const Mesh& Translation::mesh(const Attribute& stated) {
  static const Mesh kNone;
  const Attribute* named = entry_of(stated, "mesh");
  if (named == nullptr) return kNone;
  Mesh& kept = meshes_[named];
  if (!kept.devices.empty()) return kept;
  if (named->kind == Kind::Dictionary) return kept = mesh_of(*named);
  for (const Region& region : program_.root->regions) {
    for (const Block* block : region.blocks) {
      for (const Operation* op : block->operations) {
        const bool is_it = op->name == "sdy.mesh" && text(*op, "sym_name") == named->text;
        if (is_it) return kept = mesh_of(attribute(*op, "mesh"));
      }
    }
  }
  fail(*program_.root, "expected a mesh of the module, got '@", named->text, "'");
}
namespace {

// Whether it leaves all to the compiler: dimensions without axes that others may join.
bool is_open(const Attribute& stated) {
  const Attribute* dimensions = entry_of(stated, "dimensions");
  if (dimensions == nullptr || dimensions->list.empty()) return false;
  const Attribute* unreduced = entry_of(stated, "unreduced");
  if (unreduced != nullptr && !unreduced->list.empty()) return false;
  return std::ranges::all_of(dimensions->list, [](const Attribute* one) {
    return one->list.empty() && one->integer == 0;
  });
}

}  // namespace

std::string Translation::sharding_text(const Attribute& stated) {
  if (is_open(stated)) return "{unknown}";
  const Sharding made = sharding_of(stated, mesh(stated));
  return made.to_string(static_cast<int64_t>(made.parts.size()));
}

// ---- Operations --------------------------------------------------------------------------------

namespace {

void translate_same(Translation& t, const Operation& op) { t.give(op, t.operands(op)); }
void translate_nothing(Translation&, const Operation&) {}

void translate_constraint(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 1);
  const Attribute& stated = t.attribute(op, "sharding");
  // Regions of reductions are of scalars.
  if (operands[0]->shape->is_scalar() || is_open(stated)) return t.give(op, operands);
  AttributeList list(t.module());
  list.text(AttributeKey::CustomCallTarget, "Sharding");
  list.text(AttributeKey::Sharding, t.sharding_text(stated));
  t.give(op, {t.add(Opcode::CustomCall, operands, std::move(list), *operands[0]->shape)});
}

void translate_manual_computation(Translation& t, const Operation& op) {
  t.require_regions(op, 1);
  Instructions operands = t.operands(op);
  const Attribute& in = t.attribute(op, "in_shardings");
  const Attribute& out = t.attribute(op, "out_shardings");
  std::vector<std::string_view> manual;
  for (const Attribute* axis : t.attribute(op, "manual_axes").list) manual.push_back(axis->text);
  const Mesh* mesh = nullptr;
  auto shardings = [&](const Attribute& all) {
    std::string text = "{";
    for (const Attribute* one : all.list) {
      mesh = &t.mesh(*one);
      const Sharding made = sharding_of(*one, *mesh, &manual);
      text +=
          str(text.size() > 1 ? ", " : "", made.to_string(static_cast<int64_t>(made.parts.size())));
    }
    return text + "}";
  };
  const std::string of_operands = shardings(in), of_results = shardings(out);
  if (mesh == nullptr) t.fail(op, "expected shardings of a mesh");
  // Those that differ in the manual axes alone take part together.
  std::vector<std::vector<int64_t>> groups(mesh->devices.size());
  for (size_t place = 0; place < mesh->devices.size(); ++place) {
    size_t stride = 1, base = place;
    for (size_t a = mesh->axes.size(); a-- > 0;) {
      const auto size = static_cast<size_t>(mesh->axes[a].size);
      const bool is_manual = std::ranges::find(manual, mesh->axes[a].name) != manual.end();
      if (is_manual) base -= place / stride % size * stride;
      stride *= size;
    }
    groups[base].push_back(mesh->devices[place]);
  }
  std::string of_devices = "{";
  for (const std::vector<int64_t>& group : groups) {
    for (size_t i = 0; i < group.size(); ++i) {
      of_devices += str(i != 0 ? "," : of_devices.size() > 1 ? ",{" : "{", group[i]);
    }
    if (!group.empty()) of_devices += "}";
  }
  of_devices += "}";
  Computation* body = t.computation(op, 0);
  AttributeList list(t.module());
  list.text(AttributeKey::CustomCallTarget, "lamella.manual_computation");
  list.computations(AttributeKey::CalledComputations, std::span(&body, 1));
  list.text(AttributeKey::FrontendAttributes,
            str("{groups=\"", of_devices, "\",in_shardings=\"", of_operands, "\",out_shardings=\"",
                of_results, "\"}"));
  Instruction* made = t.add(Opcode::CustomCall, operands, std::move(list), t.result_shape(op));
  op.results.size() == 1 ? t.give(op, {made}) : t.give_parts(op, made);
}

constexpr SdyOperation kOperations[] = {
    {"unrealized_conversion_cast", "", translate_same},
    {"sdy.mesh", "mesh sym_name", translate_nothing},
    {"sdy.manual_computation", "in_shardings manual_axes out_shardings",
     translate_manual_computation},
    {"sdy.sharding_constraint", "sharding", translate_constraint},
    {"sdy.reshard", "sharding", translate_constraint},
    {"sdy.sharding_group", "group_id", translate_nothing},
    {"sdy.propagation_barrier", "allowed_direction", translate_same},
    {"sdy.return", "", translate_nothing},
};

}  // namespace

std::span<const SdyOperation> sdy_operations() { return kOperations; }

}  // namespace lamella::hlo::stablehlo
