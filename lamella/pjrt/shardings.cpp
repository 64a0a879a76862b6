// Follows shardings from parameters to results.
#include "lamella/pjrt/shardings.h"

#include <algorithm>
#include <unordered_map>

#include "lamella/graph/evaluate/together.h"

namespace lamella::pjrt {
namespace {

using hlo::AttributeKey;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using hlo::Sharding;

// Along a dimension: the number of parts, and which of them each device has.
struct Along {
  int64_t parts = 1;
  std::vector<int64_t> at;
};
using Tiles = std::vector<Along>;  // by dimension; empty if all devices have the whole

Tiles tiles_of(const Sharding& sharding, int64_t devices) {
  Tiles tiles;
  int64_t stride = sharding.copies;
  for (size_t d = sharding.parts.size(); d-- > 0;) {
    Along along{sharding.parts[d], std::vector<int64_t>(static_cast<size_t>(devices), 0)};
    for (size_t i = 0; i < sharding.devices.size(); ++i) {
      const int64_t device = sharding.devices[i];
      if (device < 0 || device >= devices) return {};
      along.at[static_cast<size_t>(device)] = static_cast<int64_t>(i) / stride % along.parts;
    }
    stride *= along.parts;
    tiles.insert(tiles.begin(), std::move(along));
  }
  return tiles;
}
// Whole if the parts along different dimensions depend on each other.
Sharding sharding_of(const Tiles& tiles, const Shape& shape, int64_t devices) {
  Sharding made;
  int64_t parts = 1;
  for (size_t d = 0; d < tiles.size(); ++d) {
    const int64_t size = shape.dimension(static_cast<int64_t>(d));
    if (size % tiles[d].parts != 0 || parts > devices / tiles[d].parts) return {};
    parts *= tiles[d].parts;
    made.parts.push_back(tiles[d].parts);
  }
  if (parts == 1 || devices % parts != 0) return {};
  std::vector<std::vector<int64_t>> of_part(static_cast<size_t>(parts));
  for (int64_t device = 0; device < devices; ++device) {
    int64_t part = 0;
    for (const Along& along : tiles) {
      const int64_t at = along.at.empty() ? 0 : along.at[static_cast<size_t>(device)];
      part = part * along.parts + at;
    }
    of_part[static_cast<size_t>(part)].push_back(device);
  }
  made.copies = devices / parts;
  for (const std::vector<int64_t>& one : of_part) {
    if (static_cast<int64_t>(one.size()) != made.copies) return {};
    made.devices.insert(made.devices.end(), one.begin(), one.end());
  }
  return made;
}

size_t leaves_of(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  size_t count = 0;
  for (const Shape& part : shape.tuple_shapes()) count += leaves_of(part);
  return count;
}

class Flow {
 public:
  explicit Flow(int64_t devices) : devices_(devices) {}

  using Leaves = std::vector<Sharding>;
  Leaves of(const hlo::Computation& computation, const std::vector<Leaves>& arguments, int depth) {
    if (depth > 50) return Leaves(leaves_of(*computation.root->shape));
    std::unordered_map<const Instruction*, Leaves> known;
    for (const Instruction* i : computation.instructions) {
      Leaves made(leaves_of(*i->shape));
      std::vector<Leaves> operands;
      for (const Instruction* operand : i->operands) operands.push_back(known[operand]);
      if (i->opcode == Opcode::Parameter) {
        const auto n = static_cast<size_t>(i->parameter_number);
        if (n < arguments.size() && arguments[n].size() == made.size()) made = arguments[n];
      } else {
        made = follow(*i, operands, depth);
        made.resize(leaves_of(*i->shape));
      }
      known[i] = std::move(made);
    }
    return known[computation.root];
  }

 private:
  Leaves follow(const Instruction& i, const std::vector<Leaves>& operands, int depth) {
    const std::string_view stated = i.text(AttributeKey::Sharding);
    if (hlo::is_manual_call(i)) {
      return manual(i, operands, depth);
    }
    if (!stated.empty() && i.shape->is_array()) return {Sharding::parse(stated)};
    auto called = [&](AttributeKey key, const std::vector<Leaves>& arguments) {
      return of(*i.computation(key), arguments, depth + 1);
    };
    switch (i.opcode) {
      case Opcode::Tuple: {
        Leaves all;
        for (const Leaves& one : operands) all.insert(all.end(), one.begin(), one.end());
        return all;
      }
      case Opcode::GetTupleElement: {
        const Shape& tuple = *i.operands[0]->shape;
        const auto index = static_cast<size_t>(i.integer(AttributeKey::Index));
        size_t begin = 0;
        for (size_t n = 0; n < index; ++n) begin += leaves_of(tuple.tuple_shapes()[n]);
        const size_t end = begin + leaves_of(tuple.tuple_shapes()[index]);
        return {operands[0].begin() + static_cast<ptrdiff_t>(begin),
                operands[0].begin() + static_cast<ptrdiff_t>(end)};
      }
      case Opcode::Call:
        return called(AttributeKey::ToApply, operands);
      case Opcode::While:
        return called(AttributeKey::Body, operands);
      case Opcode::OptimizationBarrier:
        return operands[0];
      case Opcode::Conditional:
        if (!i.has(AttributeKey::BranchComputations)) {
          return called(AttributeKey::TrueComputation, {operands[1]});
        }
        return of(*i.find(AttributeKey::BranchComputations)->computations()[0], {operands[1]},
                  depth + 1);
      default:
        break;
    }
    if (!i.shape->is_array()) return {};
    const Tiles made = array(i, operands);
    return {made.empty() ? Sharding() : sharding_of(made, *i.shape, devices_)};
  }
  static Leaves stated_shardings(const Instruction& i, std::string_view name) {
    Leaves made;
    const std::string_view all = i.text(AttributeKey::FrontendAttributes);
    size_t at = all.find(str(name, "=\""));
    if (at == std::string_view::npos) return made;
    at += name.size() + 2;
    for (std::string_view one : Sharding::elements(all.substr(at, all.find('"', at) - at))) {
      made.push_back(Sharding::parse(one));
    }
    return made;
  }
  // A region states how its axes cut; along other dimensions what its operands bring goes on.
  Leaves manual(const Instruction& i, const std::vector<Leaves>& operands, int depth) {
    const Leaves in = stated_shardings(i, "in_shardings");
    Leaves out = stated_shardings(i, "out_shardings");
    auto is_cut = [](const Sharding& by, size_t d) {
      return d < by.parts.size() && by.parts[d] != 1;
    };
    std::vector<Leaves> inside;
    for (size_t n = 0; n < operands.size() && n < in.size(); ++n) {
      Tiles tiles = operand(i, operands, n);
      for (size_t d = 0; d < tiles.size(); ++d) {
        if (is_cut(in[n], d)) tiles[d] = Along();
      }
      inside.push_back(
          {tiles.empty() ? Sharding() : sharding_of(tiles, *i.operands[n]->shape, devices_)});
    }
    const Leaves of_body =
        of(*i.find(AttributeKey::CalledComputations)->computations()[0], inside, depth + 1);
    for (size_t n = 0; n < std::min(out.size(), of_body.size()); ++n) {
      const Shape& shape = i.shape->is_tuple() ? i.shape->tuple_shapes()[n] : *i.shape;
      Tiles tiles = tiles_of(of_body[n], devices_);
      const Tiles stated = tiles_of(out[n], devices_);
      if (out[n].terms != 1 || tiles.empty()) continue;
      for (size_t d = 0; d < stated.size() && d < tiles.size(); ++d) {
        if (is_cut(out[n], d)) tiles[d] = stated[d];
      }
      const Sharding both = sharding_of(tiles, shape, devices_);
      if (!both.is_whole()) out[n] = both;
    }
    return out;
  }
  Tiles operand(const Instruction& i, const std::vector<Leaves>& operands, size_t n) const {
    if (!i.operands[n]->shape->is_array() || operands[n].size() != 1) return {};
    return tiles_of(operands[n][0], devices_);
  }
  Tiles array(const Instruction& i, const std::vector<Leaves>& operands) const {
    if (operands.empty()) return {};
    const Shape& shape = *i.shape;
    Tiles first = operand(i, operands, 0);
    Tiles made(static_cast<size_t>(shape.rank()));
    std::span<const int64_t> dimensions = i.integers(AttributeKey::Dimensions);
    switch (i.opcode) {
      case Opcode::Transpose:
        for (size_t d = 0; d < made.size() && !first.empty(); ++d) {
          made[d] = first[static_cast<size_t>(dimensions[d])];
        }
        return made;
      case Opcode::Broadcast:
        for (size_t d = 0; d < first.size() && d < dimensions.size(); ++d) {
          made[static_cast<size_t>(dimensions[d])] = first[d];
        }
        return made;
      case Opcode::Reduce:
        for (size_t d = 0, to = 0; d < first.size(); ++d) {
          const bool goes =
              std::ranges::find(dimensions, static_cast<int64_t>(d)) != dimensions.end();
          if (!goes && to < made.size()) made[to++] = first[d];
        }
        return made;
      case Opcode::Reshape: {
        const Shape& from = *i.operands[0]->shape;
        size_t d = 0;
        for (size_t f = 0; f < first.size(); ++f) {
          // A dimension goes on in the one that begins with it.
          const int64_t size = from.dimension(static_cast<int64_t>(f));
          int64_t before = 1, now = 1;
          for (size_t k = 0; k < f; ++k) before *= from.dimension(static_cast<int64_t>(k));
          for (d = 0;
               d < made.size() && (now < before || shape.dimension(static_cast<int64_t>(d)) == 1);
               ++d) {
            now *= shape.dimension(static_cast<int64_t>(d));
          }
          if (size == 1 || d >= made.size() || now != before) continue;
          made[d] = first[f];
        }
        return made;
      }
      case Opcode::Dot: {
        Tiles second = operand(i, operands, 1);
        size_t to = 0;
        auto take = [&](const Tiles& from, int64_t rank, std::span<const int64_t> batch,
                        std::span<const int64_t> contracted, bool takes_batch) {
          auto has = [](std::span<const int64_t> list, size_t d) {
            return std::ranges::find(list, static_cast<int64_t>(d)) != list.end();
          };
          if (takes_batch) {
            for (int64_t d : batch) {
              if (!from.empty()) made[to] = from[static_cast<size_t>(d)];
              ++to;
            }
          }
          for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
            if (has(batch, d) || has(contracted, d)) continue;
            if (!from.empty() && to < made.size()) made[to] = from[d];
            ++to;
          }
        };
        take(first, i.operands[0]->shape->rank(), i.integers(AttributeKey::LhsBatchDims),
             i.integers(AttributeKey::LhsContractingDims), true);
        const Tiles of_first = made;
        take(second, i.operands[1]->shape->rank(), i.integers(AttributeKey::RhsBatchDims),
             i.integers(AttributeKey::RhsContractingDims), false);
        return sharding_of(made, shape, devices_).is_whole() ? of_first : made;
      }
      default:
        break;
    }
    // Sizes that stay the same mean the same dimension.
    for (size_t n = 0; n < operands.size(); ++n) {
      Tiles from = operand(i, operands, n);
      const Shape& of = *i.operands[n]->shape;
      if (from.empty() || of.rank() != shape.rank()) continue;
      for (size_t d = 0; d < from.size(); ++d) {
        if (of.dimension(static_cast<int64_t>(d)) == shape.dimension(static_cast<int64_t>(d))) {
          made[d] = from[d];
        }
      }
      return made;
    }
    return {};
  }

  int64_t devices_;
};

}  // namespace

ProgramShardings shardings_of(const hlo::Module& module, int64_t devices) {
  ProgramShardings made;
  std::vector<Flow::Leaves> arguments;
  for (const Instruction* parameter : module.entry->parameters) {
    made.parameters.push_back(Sharding::parse(parameter->text(AttributeKey::Sharding)));
    arguments.push_back({made.parameters.back()});
  }
  const Instruction& root = *module.entry->root;
  made.outputs = Flow(devices).of(*module.entry, arguments, 0);
  const std::string_view stated = root.text(AttributeKey::Sharding);
  if (root.opcode != Opcode::Parameter && !stated.empty()) {
    const std::vector<std::string_view> all = Sharding::elements(stated);
    for (size_t n = 0; n < std::min(all.size(), made.outputs.size()); ++n) {
      if (all[n] != "{unknown}") made.outputs[n] = Sharding::parse(all[n]);
    }
  }
  return made;
}

}  // namespace lamella::pjrt
