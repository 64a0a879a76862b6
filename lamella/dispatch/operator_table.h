// OperatorTable: the operators of the process by name. Internal to Lamella.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamella/core/macros.h"
#include "lamella/dispatch/operator_entry.h"

namespace lamella {

// "aten::add" and "Tensor" of "aten::add.Tensor".
std::pair<std::string_view, std::string_view> split_overload(std::string_view full);

// "core" and "pointwise" of "core,pointwise"; null: none.
std::vector<std::string> split_tags(const char* tags);

// Entries are never freed, so pointers to them stay valid. Everything but lookup() runs under the
// registry's mutex.
class LAMELLA_PRIVATE_API OperatorTable {
 public:
  OperatorTable() : buckets_(kBuckets) {}
  // Wait-free. Null if nothing was ever registered under the name. `name`: "aten::add".
  OperatorEntry* lookup(std::string_view name, std::string_view overload) const;
  OperatorEntry* find_or_add(std::string_view name, std::string_view overload);
  // For a name that is not there, at a place that was kept for it.
  OperatorEntry* add(std::unique_ptr<OperatorEntry> op, uint32_t place);
  // Keeps places for operators that are added later, and gives the first.
  uint32_t keep_places(size_t count);
  // Replaces an undefined entry by a new one that takes its kernels and derivative. The old entry
  // stays undefined.
  OperatorEntry* succeed(OperatorEntry* op);
  const std::vector<OperatorEntry*>& all() const { return all_; }
  // In the order of their first registration.
  std::vector<OperatorEntry*> in_order() const;
  // The overloads of "aten::add" that are defined, in the order of their definition.
  std::vector<OperatorEntry*> overloads(std::string_view name) const;
  // Why no operator that is defined has the name, with near names.
  std::string why_unknown(std::string_view name, std::string_view overload) const;

 private:
  static constexpr size_t kBuckets = 1 << 13;
  std::vector<OperatorEntry*> buckets_;  // heads, read with acquire loads
  std::vector<OperatorEntry*> all_;
  uint32_t next_place_ = 0;
};

}  // namespace lamella
