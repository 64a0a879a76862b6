// Tables of declared operators, looked up by name: see Note [Operators without an entry].
#include "lamella/dispatch/operator_rows.h"

#include <algorithm>

#include "lamella/dispatch/operator_table.h"

namespace lamella {
namespace {

std::pair<std::string_view, std::string_view> split_namespace(std::string_view qualified) {
  const size_t colons = qualified.find("::");
  if (colons == std::string_view::npos) return {"", qualified};
  return {qualified.substr(0, colons), qualified.substr(colons + 2)};
}

}  // namespace

uint32_t& OperatorRows::bucket_of(std::string_view name) {
  return buckets_[std::hash<std::string_view>()(name) % kBuckets];
}

void OperatorRows::add_schemas(const char* name_space, const char* file, ArrayRef<SchemaRow> rows,
                               uint32_t first_place) {
  if (buckets_.empty()) buckets_.assign(kBuckets, kNone);
  operators_.reserve(operators_.size() + rows.size());
  for (const SchemaRow& row : rows) {
    const char* end = row.schema;
    while (*end != '(') ++end;
    const auto [name, overload] =
        split_overload({row.schema, static_cast<size_t>(end - row.schema)});
    uint32_t& head = bucket_of(name);
    operators_.push_back({name_space, name, overload, &row, file, first_place++, head, kNone, kNone,
                          nullptr, nullptr, false});
    head = static_cast<uint32_t>(operators_.size() - 1);
  }
  left_.fetch_add(rows.size(), std::memory_order_release);
}

bool OperatorRows::add_kernel(DispatchKey key, const char* file, const KernelRow& row) {
  Operator* op = find_full(row.name);
  if (op == nullptr) return false;
  const auto index = static_cast<uint32_t>(kernels_.size());
  kernels_.push_back({&row, file, key, kNone});
  (op->first_kernel == kNone ? op->first_kernel : kernels_[op->last_kernel].next) = index;
  op->last_kernel = index;
  return true;
}

bool OperatorRows::add_derivative(const char* file, const DerivativeRow& row) {
  Operator* op = find_full(row.name);
  if (op == nullptr || op->derivative != nullptr) return false;
  op->derivative = &row;
  op->derivative_file = file;
  return true;
}

OperatorRows::Operator* OperatorRows::find_full(std::string_view full) {
  const auto [qualified, overload] = split_overload(full);
  return find(qualified, overload);
}

OperatorRows::Operator* OperatorRows::find(std::string_view qualified, std::string_view overload) {
  if (buckets_.empty()) return nullptr;
  const auto [name_space, name] = split_namespace(qualified);
  for (uint32_t at = bucket_of(name); at != kNone; at = operators_[at].next) {
    Operator& op = operators_[at];
    if (op.name == name && op.overload == overload && op.name_space == name_space) {
      return op.entered ? nullptr : &op;
    }
  }
  return nullptr;
}

std::vector<OperatorRows::Operator*> OperatorRows::family(std::string_view qualified) {
  std::vector<Operator*> found;
  if (buckets_.empty()) return found;
  const auto [name_space, name] = split_namespace(qualified);
  for (uint32_t at = bucket_of(name); at != kNone; at = operators_[at].next) {
    Operator& op = operators_[at];
    if (op.name == name && op.name_space == name_space && !op.entered) found.push_back(&op);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<OperatorRows::Operator*> OperatorRows::all() {
  std::vector<Operator*> found;
  for (Operator& op : operators_) {
    if (!op.entered) found.push_back(&op);
  }
  return found;
}

void OperatorRows::set_entered(Operator* op) {
  op->entered = true;
  left_.fetch_sub(1, std::memory_order_release);
}

}  // namespace lamella
