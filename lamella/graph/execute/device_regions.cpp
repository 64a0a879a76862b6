// Chooses, compiles and launches regions on a device.
#include "lamella/graph/execute/device_regions.h"

#include <algorithm>

#include "lamella/api/functions.h"
#include "lamella/graph/custom_call/function_call.h"
#include "lamella/graph/execute/code_cache.h"
#include "lamella/graph/execute/machine_code.h"
#include "lamella/graph/passes/opcodes_to_operators.h"
#include "lamella/graph/runtime/tensor_value.h"

namespace lamella::hlo {
namespace {

constexpr size_t kMostBuffers = 500;  // of a kernel's parameter, which has up to 4 KiB

bool is_array(const Shape& shape) {
  if (!shape.is_array() || !shape.is_static() || !shape.is_row_major()) return false;
  std::optional<ScalarType> type = scalar_type_of(shape.element_type());
  return type && !is_complex(shape.element_type()) && element_bits(shape.element_type()) >= 8;
}

// True for sums and the like of the last dimensions by one operation, of rows that a block walks.
bool is_row_reduction(const Instruction& i) {
  constexpr int64_t kMaxRow = int64_t{1} << 16;
  if (i.opcode != Opcode::Reduce || i.operands.size() != 2) return false;
  if (!single_operation(*i.computation(AttributeKey::ToApply))) return false;
  auto reduced = i.integers(AttributeKey::Dimensions);
  bool inside = false;
  int64_t row = 1;
  for (int64_t d = 0; d < i.operand_shape(0).rank(); ++d) {
    const int64_t size = i.operand_shape(0).dimension(d);
    if (size == 1) continue;
    const bool yes = std::ranges::find(reduced, d) != reduced.end();
    if (inside && !yes) return false;
    inside = inside || yes;
    if (yes) row *= size;
  }
  return inside && row > 0 && row <= kMaxRow && i.shape->elements() > 0;
}

enum class Role : uint8_t { None, Moves, Calculates };
Role role_of(const Instruction& i, NativeRules& rules) {
  if (!is_array(*i.shape)) return Role::None;
  for (const Instruction* operand : i.operands) {
    if (!is_array(*operand->shape)) return Role::None;
  }
  if (!rules.is_native(i)) return Role::None;
  switch (i.opcode) {
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::Copy:
    case Opcode::Iota:
    case Opcode::Pad:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
      return Role::Moves;
    case Opcode::Reduce:
      return is_row_reduction(i) ? Role::Calculates : Role::None;
    default:
      return is_elementwise(i) && is_emitted_on_device(i) ? Role::Calculates : Role::None;
  }
}

std::unordered_set<const Instruction*> chosen(const Computation& computation, int least) {
  NativeRules rules(*computation.parent);
  const auto& all = computation.instructions;
  std::vector<Role> roles;
  std::unordered_map<const Instruction*, size_t> at;
  for (const Instruction* i : all) {
    at[i] = roles.size();
    roles.push_back(role_of(*i, rules));
  }
  // Movements stay if all that reads them does: users come after them.
  std::vector<bool> is_read(all.size(), false);
  for (size_t n = all.size(); n-- > 0;) {
    const bool moves = roles[n] == Role::Moves;
    if (moves && (!is_read[n] || all[n] == computation.root)) roles[n] = Role::None;
    for (const Instruction* operand : all[n]->operands) {
      const size_t o = at.at(operand);
      is_read[o] = true;
      if (roles[n] == Role::None && roles[o] == Role::Moves) roles[o] = Role::None;
    }
  }
  // Groups of instructions that read each other or the same array, each with a representative.
  std::vector<size_t> group(all.size());
  std::vector<int> count(all.size(), 0);
  auto find = [&](size_t n) {
    while (group[n] != n) n = group[n] = group[group[n]];
    return n;
  };
  std::vector<size_t> reader(all.size(), all.size());  // that calculates with it
  for (size_t n = 0; n < all.size(); ++n) {
    group[n] = n;
    if (roles[n] == Role::None) continue;
    for (const Instruction* operand : all[n]->operands) {
      const size_t o = at.at(operand);
      if (roles[o] != Role::None) {
        group[find(n)] = find(o);
      } else if (roles[n] == Role::Calculates && operand->shape->elements() > 1) {
        if (reader[o] == all.size()) reader[o] = n;
        group[find(n)] = find(reader[o]);
      }
    }
  }
  for (size_t n = 0; n < all.size(); ++n) count[find(n)] += roles[n] == Role::Calculates ? 1 : 0;
  std::unordered_set<const Instruction*> made;
  for (size_t n = 0; n < all.size(); ++n) {
    if (roles[n] != Role::None && count[find(n)] >= least) made.insert(all[n]);
  }
  return made;
}

// Constants with several elements are values of the program, which the device has already.
void read_constants(Region& region) {
  auto moved = std::ranges::stable_partition(region.instructions, [](const Instruction* i) {
    return i->opcode != Opcode::Constant || i->shape->elements() == 1;
  });
  region.inputs.insert(region.inputs.end(), moved.begin(), moved.end());
  region.instructions.erase(moved.begin(), moved.end());
}
// The steps of a computation; appends their regions.
std::vector<DeviceStep> steps_of(const Computation& computation, NativeRules& native,
                                 DeviceRules& rules, std::vector<Region>& regions) {
  std::vector<ScheduledStep> scheduled =
      schedule(computation, &native, [&](const Instruction& i) { return rules.is_compiled(i); });
  std::vector<DeviceStep> steps;
  for (ScheduledStep& scheduled_step : scheduled) {
    Region& region = scheduled_step.region;
    DeviceStep step{scheduled_step.instruction, nullptr};
    if (step.instruction == nullptr) {
      if (region.outputs.empty()) continue;
      read_constants(region);
      step.region = std::make_unique<DeviceRegion>();
      step.region->inputs = region.inputs;
      step.region->outputs = region.outputs;
      regions.push_back(std::move(region));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

bool has_device_regions(Device device) {
  return device.is_cuda() && cuda_table() != nullptr && may_have_machine_compiler();
}

bool DeviceRules::is_compiled(const Instruction& i) {
  auto known = compiled_.find(i.parent);
  if (known == compiled_.end()) {
    known = compiled_.emplace(i.parent, chosen(*i.parent, least_)).first;
  }
  return known->second.count(&i) != 0;
}

std::optional<DeviceSteps> device_steps(const Module& module, Device device, bool compiled,
                                        std::string* why) {
  DeviceSteps steps;
  std::vector<Region> regions;
  DeviceRules rules(1);
  NativeRules native(module);
  std::unordered_set<const Computation*> run;
  find_steps(*module.entry, &run);
  for (const Computation* computation : module.computations) {
    const bool has_regions =
        compiled && run.contains(computation) &&
        std::ranges::any_of(computation->instructions,
                            [&](const Instruction* i) { return rules.is_compiled(*i); });
    std::vector<DeviceStep>& own = steps[computation];
    if (has_regions) {
      own = steps_of(*computation, native, rules, regions);
    } else {
      for (const Instruction* i : computation->instructions) own.push_back({i, nullptr});
    }
  }
  if (regions.empty()) return steps;
  std::vector<const Region*> all;
  bool fits = true;
  for (const Region& region : regions) {
    all.push_back(&region);
    fits = fits && region.inputs.size() + region.outputs.size() < kMostBuffers;
  }
  std::optional<CodeImage> image;
  if (fits) image = image_of(module, all, nullptr, /*on_device=*/true);
  *why = fits ? "the compiler makes no code for it" : "regions have too many arrays";
  if (!image) return std::nullopt;
  const CudaTable* cuda = cuda_table();
  size_t r = 0;
  for (const Computation* computation : module.computations) {
    for (DeviceStep& step : steps.at(computation)) {
      if (step.region == nullptr) continue;
      const MachineCode& code = image->regions[r];
      step.region->temporary_bytes = code.temporary_bytes;
      step.region->notes = code.notes;
      step.region->cuda = cuda;
      for (size_t k = 0; k < code.notes.size(); ++k) {
        void* kernel = nullptr;
        const lamella_status status = cuda->load_kernel(device.index(), image->block.c_str(),
                                                        str("region_", r, "_", k).c_str(), &kernel);
        if (status != LAMELLA_OK) {
          *why = lamella_error_text();
          return std::nullopt;
        }
        step.region->kernels.push_back({kernel, code.may_share[k].first, code.may_share[k].second});
      }
      ++r;
    }
  }
  why->clear();
  return steps;
}

std::vector<TensorBase> DeviceRegion::run(std::span<const TensorBase> given, Device device) const {
  constexpr uintptr_t kAlignment = 16;
  std::vector<TensorBase> held, results;
  std::vector<void*> table;
  for (const TensorBase& one : given) {
    Tensor tensor = Tensor(one).contiguous();
    if (reinterpret_cast<uintptr_t>(tensor.impl()->data) % kAlignment != 0) {
      tensor = tensor.clone(MemoryFormat::Contiguous);
    }
    table.push_back(tensor.impl()->data);
    held.push_back(std::move(tensor));
  }
  auto empty = [&](IntArrayRef sizes, ScalarType type) {
    Tensor made = lamella::empty(sizes, TensorOptions(type).device(device));
    table.push_back(made.impl()->data);
    return made;
  };
  for (const Instruction* i : outputs) {
    const Shape& shape = *i->shape;
    results.push_back(empty(IntArrayRef(shape.dimensions().data(), shape.dimensions().size()),
                            tensor_type_of(shape.element_type())));
  }
  const int64_t bytes[] = {temporary_bytes};
  if (temporary_bytes != 0) {
    held.push_back(empty(bytes, ScalarType::Byte));
  } else {
    table.push_back(nullptr);
  }
  for (const Kernel& one : kernels) {
    detail::check(cuda->launch(device.index(), one.kernel, "fused region", table.data(), one.blocks,
                               one.threads));
  }
  return results;
}

}  // namespace lamella::hlo
