// Names: a hash table from names to objects, for parsing. Internal to lamella/graph.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lamella/graph/hlo/name_table.h"

namespace lamella::hlo {

// Maps names of one kind (instructions, computations, shapes) to objects. clear() takes constant
// time.
template <class T>
class Names {
 public:
  T* find(std::string_view name) const {
    if (slots_.empty()) return nullptr;
    for (size_t at = hash_of(name) & mask_; slots_[at].age == age_; at = (at + 1) & mask_) {
      if (slots_[at].name == name) return slots_[at].object;
    }
    return nullptr;
  }
  // Returns false, and inserts nothing, if the table has the name already.
  bool insert(std::string_view name, T* object) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    size_t at = hash_of(name) & mask_;
    for (; slots_[at].age == age_; at = (at + 1) & mask_) {
      if (slots_[at].name == name) return false;
    }
    slots_[at] = {name, object, age_};
    ++count_;
    return true;
  }
  void clear() {
    ++age_;
    count_ = 0;
  }

 private:
  struct Slot {
    std::string_view name;
    T* object = nullptr;
    uint32_t age = 0;
  };
  void grow() {
    std::vector<Slot> before = std::move(slots_);
    slots_.assign(std::max<size_t>(64, before.size() * 2), Slot{});
    mask_ = slots_.size() - 1;
    for (const Slot& slot : before) {
      if (slot.age != age_) continue;
      size_t at = hash_of(slot.name) & mask_;
      while (slots_[at].age == age_) at = (at + 1) & mask_;
      slots_[at] = slot;
    }
  }
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  size_t count_ = 0;
  uint32_t age_ = 1;
};

}  // namespace lamella::hlo
