// UnitPlan: the places that units write, and memory that they may overwrite.
#include <algorithm>
#include <set>

#include "lamella/graph/compiler/units.h"

namespace lamella::hlo::compiler {

bool UnitPlan::is_invariant(const Instruction* i, size_t leaf) {
  const Instruction* root = i->computation(AttributeKey::Body)->root;
  if (root->opcode != Opcode::Tuple || i->operands[0]->opcode != Opcode::Tuple) return false;
  for (size_t e = 0, first = 0; first <= leaf && e < root->operands.size(); ++e) {
    const Instruction* element = root->operands[e];
    if (first == leaf && element->shape->is_array()) {
      return element->opcode == Opcode::GetTupleElement &&
             element->operands[0]->opcode == Opcode::Parameter &&
             element->integer(AttributeKey::Index) == static_cast<int64_t>(e);
    }
    first += leaf_count(*element->shape);
  }
  return false;
}

std::pair<const Instruction*, size_t> UnitPlan::maker_of_start(const Instruction* i, size_t leaf,
                                                               size_t u) const {
  const Instruction* start = i->operands[0];
  std::pair<const Instruction*, size_t> made = origin(start, leaf);
  auto unit = unit_of_.find(made.first);
  if (unit == unit_of_.end() || last_use(made.first, unit->second) != u) return {nullptr, 0};
  for (size_t other = 0; other < leaf_count(*i->shape); ++other) {
    if (other != leaf && origin(start, other) == made) return {nullptr, 0};
  }
  return made;
}

void UnitPlan::place_wanted(
    const Wanted& wanted,
    std::unordered_map<const Instruction*, std::vector<Place>>* destination) const {
  for (size_t l = 0; l < wanted.places.size(); ++l) {
    auto [from, leaf] = origin(wanted.instruction, l);
    if (written_.count(from) == 0) continue;
    std::vector<Place>& places = (*destination)[from];
    places.resize(leaf_count(*from->shape));
    if (places[leaf].kind == Place::None) places[leaf] = wanted.places[l];
  }
}

bool UnitPlan::is_read_after(const Place& place, size_t u, const Instruction* i) const {
  auto is_there = [&](const Read& read) {
    if (!is_given(read.origin)) return false;
    std::vector<Place> places = e_.places_of(read.origin);
    return read.leaf < places.size() && places[read.leaf] == place;
  };
  for (size_t v = u; v < units.size(); ++v) {
    for (const Member& member : units[v].members) {
      for (const Read& read : member.reads) {
        if (!is_there(read)) continue;
        if (v > u) return true;
        const Unit& unit = units[u];
        // Allowed are an update in the place of its operand, and a loop that reads only the element
        // which it is about to write.
        bool update = (i->opcode == Opcode::DynamicUpdateSlice || i->opcode == Opcode::Scatter) &&
                      std::count_if(member.reads.begin(), member.reads.end(), is_there) == 1 &&
                      origin(i->operands[0]).first == read.origin &&
                      origin(i->operands[0]).second == read.leaf;
        bool loop = unit.kind == Unit::Loops && read.access == Access::Same && unit.rows < 0 &&
                    i->shape->is_array() && i->opcode != Opcode::Reduce;
        if (!update && !loop) return true;
      }
    }
  }
  for (const Wanted& one : wanted_) {
    for (size_t l = 0; l < one.places.size(); ++l) {
      auto [from, leaf] = origin(one.instruction, l);
      if (!is_given(from) || one.places[l] == place) continue;
      std::vector<Place> places = e_.places_of(from);
      if (leaf < places.size() && places[leaf] == place) return true;
    }
  }
  return false;
}

Place UnitPlan::read_in_place(size_t u, const Instruction* i, std::span<const Place> ending) const {
  const Unit& unit = units[u];
  if (unit.kind != Unit::Loops || unit.rows >= 0 || i->opcode == Opcode::Reduce) return {};
  auto place_of = [&](const Read& read) {
    auto inside = unit_of_.find(read.origin);
    if (inside != unit_of_.end() && inside->second >= u) return Place();
    std::vector<Place> places = e_.places_of(read.origin);
    return read.leaf < places.size() ? places[read.leaf] : Place();
  };
  for (const Member& member : unit.members) {
    for (const Read& read : member.reads) {
      if (!read.origin->shape->is_array() || read.origin->shape->bytes() != i->shape->bytes() ||
          element_bytes(read.origin->shape->element_type()) !=
              element_bytes(i->shape->element_type())) {
        continue;
      }
      Place place = place_of(read);
      if (place.kind != Place::Temporary || std::ranges::find(ending, place) == ending.end()) {
        continue;
      }
      bool same = std::ranges::all_of(unit.members, [&](const Member& other) {
        return std::ranges::all_of(other.reads, [&](const Read& theirs) {
          return theirs.access == Access::Same || place_of(theirs) != place;
        });
      });
      if (same) return place;
    }
  }
  return {};
}

size_t UnitPlan::last_use(const Instruction* i, size_t u) const {
  size_t last = u;
  for (size_t v = u + 1; v < units.size(); ++v) {
    for (const Member& member : units[v].members) {
      for (const Read& read : member.reads) {
        if (read.origin == i) last = v;
      }
    }
  }
  for (const Wanted& one : wanted_) {
    for (size_t l = 0; l < one.places.size(); ++l) {
      if (origin(one.instruction, l).first == i) last = units.size();
    }
  }
  return last;
}

std::vector<std::pair<int64_t, int64_t>> UnitPlan::sharing(int64_t first_output) const {
  std::vector<std::pair<int64_t, int64_t>> found;
  std::set<int64_t> used;
  for (size_t u = 0; u < units.size(); ++u) {
    for (const Member& member : units[u].members) {
      if (!member.is_stored || !member.instruction->shape->is_array()) continue;
      auto at = e_.places.find(member.instruction);
      if (at == e_.places.end()) continue;
      const Place& to = at->second[0];
      if (to.kind != Place::Buffer || to.at < first_output) continue;
      for (const Read& read : member.reads) {
        if (!is_given(read.origin) || !read.origin->shape->is_array()) continue;
        std::vector<Place> from = e_.places_of(read.origin);
        if (from.empty() || from[0].kind != Place::Buffer || from[0].at >= first_output) continue;
        if (read.origin->shape->bytes() != member.instruction->shape->bytes()) continue;
        if (element_bytes(read.origin->shape->element_type()) !=
            element_bytes(member.instruction->shape->element_type())) {
          continue;
        }
        if (is_read_after(from[0], u, member.instruction)) continue;
        if (used.insert(from[0].at).second) {
          found.emplace_back(to.at, from[0].at);
          break;
        }
      }
    }
  }
  return found;
}

}  // namespace lamella::hlo::compiler
