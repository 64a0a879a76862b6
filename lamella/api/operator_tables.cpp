// Registration of generated tables, straight into the registry.
#include "lamella/api/operator_tables.h"

#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

std::vector<std::string> split(const char* tags) {
  std::vector<std::string> list;
  if (tags == nullptr) return list;
  std::string_view text(tags);
  for (size_t end = 0; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find(','), text.size());
    list.emplace_back(text.substr(0, end));
  }
  return list;
}

}  // namespace

void register_schemas(const char* name_space, const char* file, ArrayRef<SchemaRow> rows) {
  Registry& registry = Registry::get();
  registry.claim_namespace(name_space, &Registry::kOwn, {file, 0});
  for (const SchemaRow& row : rows) {
    registry.define(&Registry::kOwn, name_space, row.schema, "", split(row.tags), {file, row.line},
                    true);
  }
}

void register_kernels(DispatchKey key, const char* file, ArrayRef<KernelRow> rows) {
  Registry& registry = Registry::get();
  for (const KernelRow& row : rows) {
    auto kernel = std::make_shared<KernelEntry>();
    kernel->typed = row.typed;
    kernel->boxed = row.boxed;
    kernel->file = file;
    kernel->line = row.line;
    registry.implement(&Registry::kOwn, row.name, key, std::move(kernel));
  }
}

void register_derivatives(const char* file, ArrayRef<DerivativeRow> rows) {
  Registry& registry = Registry::get();
  for (const DerivativeRow& row : rows) {
    registry.derive(&Registry::kOwn, row.name, row.derivative, {file, row.line});
  }
}

}  // namespace lamella
