// Registration blocks behind the C ABI, the handshake, and failures of static initialisers.
#include <algorithm>
#include <cstring>

#include "lamella/abi/autograd.h"
#include "lamella/abi/policy.h"
#include "lamella/dispatch/loading.h"
#include "lamella/schema/parser.h"
#include "lamella/schema/suggest.h"

using namespace lamella;

struct lamella_library {
  int32_t kind;
  std::string name_space;
  DispatchKey key;
  Origin origin;
  const code::Library* code = nullptr;  // that opened the block; null: never unloaded
  uint64_t number = 0;                  // of blocks opened so far
  Parked parked;                        // its registrations, while its library is unloaded
  std::vector<std::pair<std::string, std::string>> implemented;  // names, and where
};

namespace {

std::shared_ptr<KernelEntry> make_kernel(const lamella_kernel_description& description) {
  auto kernel = std::make_shared<KernelEntry>();
  kernel->typed = description.typed;
  kernel->boxed = description.boxed;
  kernel->context = description.context;
  kernel->dispose = description.dispose;
  kernel->signature = description.signature != nullptr ? description.signature : "";
  kernel->file = description.file != nullptr ? description.file : "";
  kernel->line = description.line;
  if (description.boxed == nullptr) {
    kernel->fallthrough = true;
    kernel->boxed = fallthrough_kernel()->boxed;
  }
  return kernel;
}

// All blocks that are open, oldest first, and how many ever were; under the registry's mutex.
struct Blocks {
  std::vector<lamella_library*> open;
  uint64_t opened = 0;
};
Blocks& blocks() {
  static auto* all = new Blocks;
  return *all;
}
template <class Fits>
std::vector<lamella_library*> blocks_that(Fits fits) {
  std::lock_guard lock(Registry::get().mutex());
  std::vector<lamella_library*> found;
  for (lamella_library* block : blocks().open) {
    if (fits(*block)) found.push_back(block);
  }
  return found;
}
bool park(const std::vector<lamella_library*>& found) {
  bool gone = true;
  for (lamella_library* block : found) gone &= Registry::get().remove(block, &block->parked);
  return gone;
}

// The library that opens a block, or null if it is never unloaded. `file` is a string literal in
// that library, except for callers in other languages; `caller` is then an address in it.
const code::Library* opener(const char* file, const void* caller) {
  const code::Library* library = code::library_of(file);
  if (library == nullptr) library = code::library_of(caller);
  return library != nullptr && library->stays ? nullptr : library;
}

void check_open(const lamella_library* library, const char* what) {
  LAMELLA_CHECK(what != nullptr, "library: expected the name of an operator, got NULL");
  LAMELLA_CHECK(library != nullptr, std::string_view(what, strcspn(what, "(")),
                ": expected an open block of registrations, got one that was closed");
}

// A name under which no operator can be defined would wait for its definition for ever.
void check_name(const char* what, const std::string& name, const std::string& where) {
  auto parsed = try_parse_operator_name(name);
  if (const auto* good = std::get_if<OperatorName>(&parsed); good && good->str() == name) return;
  const auto* problem = std::get_if<SchemaProblem>(&parsed);
  throw Error(str(what, ": expected the name of an operator such as 'ns::name.overload', got '",
                  name, "'", problem != nullptr ? ": " + problem->message : "", " (", where, ")"));
}

bool is_identifier(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text) {
    bool fits =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!fits) return false;
  }
  return true;
}

}  // namespace

namespace lamella {

bool park_blocks(const code::Library* library) {
  return park(blocks_that([&](const auto& block) { return block.code == library; }));
}
void resume_blocks(const code::Library* library) {
  auto found = blocks_that([&](const auto& block) { return block.code == library; });
  try {
    for (lamella_library* block : found) Registry::get().resume(block, block->parked);
  } catch (...) {
    park(found);
    throw;
  }
}
bool has_blocks(const code::Library* library) {
  return !blocks_that([&](const auto& block) { return block.code == library; }).empty();
}
std::vector<std::string> misspelt_kernels(const code::Library* library) {
  auto found = blocks_that([&](const auto& block) { return block.code == library; });
  std::vector<std::string> names, warnings;
  for (const lamella_library* block : found) {
    for (const auto& [name, where] : block->implemented) {
      const auto [base, overload] = split_overload(name);
      const OperatorEntry* op = Registry::get().lookup(base, overload);
      if (op != nullptr && op->defined()) continue;
      if (names.empty()) {
        for (const OperatorEntry* other : Registry::get().entries()) {
          if (other->defined()) names.push_back(other->full_name());
        }
      }
      const std::string near =
          did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end()));
      if (near.empty()) continue;
      warnings.push_back(str("impl: unknown operator '", name, "'", near, " (", where, ")"));
    }
  }
  return warnings;
}
std::vector<const OperatorEntry*> operators_of(const code::Library* library) {
  auto found = blocks_that([&](const auto& block) { return block.code == library; });
  std::vector<const OperatorEntry*> defined;
  const std::vector<OperatorEntry*> all = Registry::get().entries();
  std::lock_guard lock(Registry::get().mutex());
  for (const OperatorEntry* op : all) {
    if (std::find(found.begin(), found.end(), op->owner) != found.end()) defined.push_back(op);
  }
  return defined;
}
uint64_t blocks_opened() {
  std::lock_guard lock(Registry::get().mutex());
  return blocks().opened;
}
void park_blocks_since(uint64_t count) {
  park(blocks_that([&](const auto& block) { return block.number >= count; }));
}

}  // namespace lamella

extern "C" {

lamella_status lamella_library_open(int32_t kind, const char* name_space, uint16_t key,
                                    const char* file, uint32_t line,
                                    lamella_library** library) noexcept {
  return lamella::detail::guarded([&] {
    auto opened = std::make_unique<lamella_library>();
    opened->kind = kind;
    opened->name_space = name_space;
    opened->key = static_cast<DispatchKey>(key);
    opened->origin = {file != nullptr ? file : "", line};
    opened->code = opener(file, __builtin_return_address(0));
    LAMELLA_CHECK(name_space != nullptr, "library: expected a namespace, got NULL (",
                  opened->origin.where(), ")");
    LAMELLA_CHECK(is_identifier(name_space),
                  "library: expected a namespace that is an identifier, got '", name_space, "' (",
                  opened->origin.where(), ")");
    LAMELLA_CHECK(kind == LAMELLA_LIBRARY_IMPL || opened->name_space != "_",
                  "library: namespace '_' is for fallbacks and holds no operators (",
                  opened->origin.where(), ")");
    if (kind == LAMELLA_LIBRARY_DEF) {
      Registry::get().claim_namespace(opened->name_space, opened.get(), opened->origin);
    }
    std::lock_guard lock(Registry::get().mutex());
    opened->number = blocks().opened++;
    blocks().open.push_back(opened.get());
    *library = opened.release();
  });
}

const char* lamella_library_namespace(const lamella_library* library) noexcept {
  return library->name_space.c_str();
}

void lamella_library_close(lamella_library* library) noexcept {
  if (library == nullptr) return;
  try {
    {
      std::lock_guard lock(Registry::get().mutex());
      std::erase(blocks().open, library);
    }
    Registry::get().remove(library);
  } catch (...) {
    lamella::detail::status_of_current_exception();
  }
  delete library;
}

lamella_status lamella_library_define(lamella_library* library, const char* schema,
                                      const char* inferred, const char* tags, const char* file,
                                      uint32_t line) noexcept {
  return lamella::detail::guarded([&] {
    check_open(library, schema);
    LAMELLA_CHECK(library->kind != LAMELLA_LIBRARY_IMPL,
                  "def: an operator cannot be defined in an IMPL block (", library->origin.where(),
                  "); use LAMELLA_LIBRARY or LAMELLA_LIBRARY_FRAGMENT");
    Origin origin{file != nullptr ? file : library->origin.file,
                  file != nullptr ? line : library->origin.line};
    try {
      Registry::get().define(library, library->name_space, schema,
                             inferred != nullptr ? inferred : "", split_tags(tags), origin);
    } catch (const SchemaError& error) {
      // The place stands behind the message, above the signature and its caret.
      std::string text = error.what();
      throw Error(text.insert(std::min(text.find('\n'), text.size()), " (" + origin.where() + ")"));
    }
  });
}

lamella_status lamella_library_implement(lamella_library* library, const char* name, uint16_t key,
                                         const lamella_kernel_description* description) noexcept {
  return lamella::detail::guarded([&] {
    std::shared_ptr<KernelEntry> kernel = make_kernel(*description);
    check_open(library, name);
    if (kernel->file.empty()) kernel->file = library->origin.file;
    DispatchKey to = static_cast<DispatchKey>(key);
    if (to == DispatchKey::None) to = library->key;
    if (to == DispatchKey::None) to = DispatchKey::CompositeImplicitAutograd;
    LAMELLA_CHECK(library->key == DispatchKey::None || to == library->key,
                  "impl: expected a kernel for ", dispatch_key_name(library->key),
                  " in this block, got one for ", dispatch_key_name(to), " (", kernel->where(),
                  ")");
    LAMELLA_CHECK(library->name_space != "_",
                  "impl: namespace '_' is for fallbacks and holds no operators (", kernel->where(),
                  ")");
    std::string full = name;
    size_t split = full.find("::");
    if (split == std::string::npos) {
      full = library->name_space + "::" + full;
    } else {
      LAMELLA_CHECK(full.substr(0, split) == library->name_space,
                    "impl: expected an operator of namespace '", library->name_space, "', got '",
                    full, "' (", kernel->where(), ")");
    }
    check_name("impl", full, kernel->where());
    std::string where = kernel->where();
    Registry::get().implement(library, full, to, std::move(kernel));
    library->implemented.emplace_back(std::move(full), std::move(where));
  });
}

lamella_status lamella_library_derivative(lamella_library* library, const char* name,
                                          const lamella_derivative* derivative, const char* file,
                                          uint32_t line) noexcept {
  return lamella::detail::guarded([&] {
    check_open(library, name);
    Origin origin{file != nullptr ? file : library->origin.file, line};
    std::string full = name;
    if (full.find("::") == std::string::npos) full = library->name_space + "::" + full;
    check_name("derivative", full, origin.where());
    Registry::get().derive(library, full, derivative, origin);
  });
}

lamella_status lamella_library_document(lamella_library* library, const char* name,
                                        const char* text) noexcept {
  return lamella::detail::guarded([&] {
    check_open(library, name);
    LAMELLA_CHECK(text != nullptr, "document: expected a text for '", name, "', got NULL");
    std::string full = name;
    if (full.find("::") == std::string::npos) full = library->name_space + "::" + full;
    check_name("document", full, library->origin.where());
    Registry::get().document(library, full, std::make_unique<const std::string>(text));
  });
}

lamella_status lamella_library_fallback(lamella_library* library, uint16_t key,
                                        const lamella_kernel_description* description) noexcept {
  return lamella::detail::guarded([&] {
    std::shared_ptr<KernelEntry> kernel = make_kernel(*description);
    check_open(library, "fallback");
    DispatchKey to = static_cast<DispatchKey>(key);
    if (to == DispatchKey::None) to = library->key;
    LAMELLA_CHECK(library->name_space == "_",
                  "fallback: expected namespace '_', because it serves all operators, got '",
                  library->name_space, "' (", kernel->where(), ")");
    LAMELLA_CHECK(to != DispatchKey::None, "fallback: expected a dispatch key (", kernel->where(),
                  ")");
    Registry::get().fallback(library, to, std::move(kernel));
  });
}

lamella_status lamella_handshake(uint32_t major, uint32_t minor, uint32_t tensor_bytes,
                                 uint32_t value_bytes, uint32_t operator_bytes,
                                 const char* library) noexcept {
  try {
    std::string name = library != nullptr ? library : "a library";
    if (major != LAMELLA_ABI_MAJOR || minor > LAMELLA_ABI_MINOR) {
      return lamella::detail::fail(
          LAMELLA_ERROR,
          name + ": was built for Lamella ABI " + std::to_string(major) + "." +
              std::to_string(minor) + ", this is " + std::to_string(LAMELLA_ABI_MAJOR) + "." +
              std::to_string(LAMELLA_ABI_MINOR) + "; build it again with this version's headers");
    }
    if (tensor_bytes > sizeof(lamella_tensor) || value_bytes != sizeof(lamella_value) ||
        operator_bytes > sizeof(lamella_operator)) {
      return lamella::detail::fail(
          LAMELLA_ERROR,
          name + ": its structures do not fit this version (tensor " +
              std::to_string(tensor_bytes) + " bytes for " +
              std::to_string(sizeof(lamella_tensor)) + ", value " + std::to_string(value_bytes) +
              " for " + std::to_string(sizeof(lamella_value)) + ", operator " +
              std::to_string(operator_bytes) + " for " + std::to_string(sizeof(lamella_operator)) +
              "); build it again with this version's headers");
    }
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

void lamella_defer_failure(const char* text, const char* file, uint32_t line) noexcept {
  try {
    std::string failure = text;
    std::string where = std::string(file) + ":" + std::to_string(line);
    // The error of a definition names the line of the definition.
    if (failure.find(std::string(file) + ":") == std::string::npos) failure += " (" + where + ")";
    defer_load_failure(failure);
  } catch (...) {
    lamella::detail::status_of_current_exception();
  }
}

lamella_status lamella_raise_deferred(void) noexcept {
  try {
    std::string text;
    for (const std::string& failure : take_load_failures()) {
      if (!text.empty()) text += '\n';
      text += failure;
    }
    return text.empty() ? LAMELLA_OK : lamella::detail::fail(LAMELLA_ERROR, text);
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

}  // extern "C"
