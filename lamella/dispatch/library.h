// Library and the LAMELLA_LIBRARY macros: how operators are declared and kernels registered.
#pragma once
#include <source_location>

#include "lamella/abi/autograd.h"
#include "lamella/abi/policy.h"
#include "lamella/dispatch/dispatcher.h"

namespace lamella {

// How autocast treats the tensors among an operator's arguments; lamella/layers/autocast says what
// each class does.
enum class AutocastClass : uint8_t {
  kUnsaid,
  kLowerPrecision,
  kFloat32,
  kFloat32SetDtype,
  kWidest,
  kBanned,
  kNone
};
// Information for the layers that a definition gives besides its schema; null fields are not given.
struct Policies {
  AutocastClass autocast = AutocastClass::kUnsaid;
  const char* batching = nullptr;  // "pointwise", "reduction", "composite", "loop", a rule's name
  const char* hlo = nullptr;       // an HLO opcode such as "add"
  const char* tags = nullptr;      // more tags, comma-separated
  const char* doc = nullptr;       // what it computes, in words, with an example

  // The same as comma-separated tags.
  LAMELLA_LAZY std::string str() const {
    constexpr const char* classes[] = {"",       "lower_precision", "float32", "float32_set_dtype",
                                       "widest", "banned",          "none"};
    std::string text = tags != nullptr ? tags : "";
    auto add = [&text](const char* policy, const char* word) {
      if (word == nullptr || *word == 0) return;
      if (!text.empty()) text.push_back(',');
      append(text, policy);
      append(text, word);
    };
    add("autocast:", classes[static_cast<size_t>(autocast)]);
    add("batching:", batching);
    add("hlo:", hlo);
    return text;
  }
};

namespace detail {
class LibraryInit;
}  // namespace detail
template <class T>
class class_;

// A block of registrations for one namespace; they end with it.
class Library final {
 public:
  enum Kind {
    DEF = LAMELLA_LIBRARY_DEF,
    IMPL = LAMELLA_LIBRARY_IMPL,
    FRAGMENT = LAMELLA_LIBRARY_FRAGMENT
  };

  // Throws if the namespace is already claimed by another DEF block.
  Library(Kind kind, const char* name_space, BlockKey key, const char* file, uint32_t line)
      : file_(file), line_(line) {
    detail::check(lamella_library_open(kind, name_space, static_cast<uint16_t>(key.key), file, line,
                                       &library_));
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  Library(Library&& other) noexcept
      : library_(other.library_), file_(other.file_), line_(other.line_) {
    other.library_ = nullptr;
  }
  Library& operator=(Library&& other) noexcept {
    detail::swap_plain(library_, other.library_);
    detail::swap_plain(file_, other.file_);
    detail::swap_plain(line_, other.line_);
    return *this;
  }
  ~Library() { reset(); }
  // Ends the registrations now.
  void reset() {
    if (library_ != nullptr) lamella_library_close(library_);
    library_ = nullptr;
  }

  // m.def("add(Tensor self, Tensor other) -> Tensor"); tags: comma-separated, or null. Errors name
  // the line of the call if it is in the block's file.
  Library& def(const char* schema, const char* tags = nullptr,
               std::source_location at = std::source_location::current()) & {
    check_defined(lamella_library_define(library_, schema, nullptr, tags, file_, line_), at);
    return *this;
  }
  LAMELLA_LAZY Library& def(const std::string& schema, const char* tags = nullptr,
                            std::source_location at = std::source_location::current()) & {
    return def(schema.c_str(), tags, at);
  }
  // m.def("add(Tensor self, Tensor other) -> Tensor", {.batching = "pointwise", .hlo = "add"});
  // `doc` is what Python's help() and `lamella ops` print.
  LAMELLA_LAZY Library& def(const char* schema, const Policies& policies,
                            std::source_location at = std::source_location::current()) & {
    return def(schema, policies.str().c_str(), at).document(schema, policies.doc);
  }
  // m.def("add", f): the schema is inferred from f where only a name is given; f serves every
  // backend, gradients included if it is made of differentiable operators.
  template <class F>
    requires(!std::is_convertible_v<F, const char*> && !std::is_same_v<std::decay_t<F>, Policies>)
  Library& def(const char* name_or_schema, F&& f, const Policies& policies = {},
               std::source_location at = std::source_location::current()) & {
    CppFunction function = as_function(std::forward<F>(f));
    bool only_name = std::string_view(name_or_schema).find('(') == std::string_view::npos;
    if (only_name && function.signature().empty()) {
      detail::throw_printf(
          LAMELLA_ERROR,
          "def: expected a schema for '%s', because a boxed function has none to infer",
          name_or_schema);
    }
    std::string name(name_or_schema);
    std::string inferred = only_name ? function.whole_schema() : "";
    check_defined(lamella_library_define(
                      library_, (name + inferred).c_str(),
                      only_name && inferred.empty() ? function.signature().data() : nullptr,
                      policies.str().c_str(), file_, line_),
                  at);
    size_t end = std::string_view(name_or_schema).find('(');
    if (end != std::string_view::npos) name.resize(end);
    return document(name, policies.doc).implement(name.c_str(), std::move(function));
  }
  // m.impl("add", f): for the block's key, or dispatch(key, f)'s.
  template <class F>
  Library& impl(const char* name, F&& f) & {
    return implement(name, as_function(std::forward<F>(f)));
  }
  template <class F>
  Library& impl(const std::string& name, F&& f) & {
    return impl(name.c_str(), std::forward<F>(f));
  }
  // For a key, or for that of a device type.
  template <class Key, class F>
  Library& impl(const char* name, Key key, F&& f) & {
    return implement(name, dispatch(key, std::forward<F>(f)));
  }
  // Registers the class T under a name of the block's namespace. Needs custom_class.h.
  template <class T>
  lamella::class_<T> class_(const char* name, const char* doc = "") &;
  template <class T>
  lamella::class_<T> class_(const std::string& name, const std::string& doc = "") & {
    return class_<T>(name.c_str(), doc.c_str());
  }
  // Where PyTorch would look for kernels in Python: Lamella's are where they are registered.
  Library& set_python_module(const char*, const char* = "") & { return *this; }
  Library& impl_abstract_pystub(const char*, const char* = "") & { return *this; }
  // How an operator is differentiated: see lamella_derivative. The table must live until the block
  // ends. `file` and `line` say where it is declared, if not here.
  Library& derivative(const char* name, const lamella_derivative* table, const char* file = nullptr,
                      uint32_t line = 0) & {
    detail::check(lamella_library_derivative(library_, name, table, file != nullptr ? file : file_,
                                             file != nullptr ? line : line_));
    return *this;
  }
  // For all operators that have no kernel for the block's key. Namespace "_" only.
  template <class F>
  Library& fallback(F&& f) & {
    CppFunction function = as_function(std::forward<F>(f));
    uint16_t key = static_cast<uint16_t>(function.key());
    lamella_kernel_description description = function.release(file_, line_);
    detail::check(lamella_library_fallback(library_, key, &description));
    return *this;
  }

 private:
  template <class F>
  static CppFunction as_function(F&& f) {
    if constexpr (std::is_same_v<std::decay_t<F>, CppFunction>) {
      return CppFunction(std::move(f));
    } else {
      return CppFunction(std::forward<F>(f));
    }
  }
  // Sets the documentation of an operator, given by its name or schema; does nothing if null.
  LAMELLA_LAZY Library& document(std::string schema, const char* doc) & {
    if (doc == nullptr) return *this;
    std::string_view text = schema;
    schema.resize(text.substr(0, text.find('(')).find_last_not_of(' ') + 1);
    detail::check(lamella_library_document(library_, schema.c_str(), doc));
    return *this;
  }
  // The error of a definition in the block's file names its own line in place of the block's.
  // Without std::string, whose functions every file with a definition would compile.
  LAMELLA_COLD void check_defined(lamella_status status, const std::source_location& at) const {
    if (status == LAMELLA_OK) return;
    if (file_ != nullptr && __builtin_strcmp(at.file_name(), file_) == 0) {
      char place[1024];
      const int size = __builtin_snprintf(place, sizeof(place), " (%s:%u)", file_, line_);
      const char* text = lamella_error_text();
      const char* found = __builtin_strstr(text, place);
      if (size < static_cast<int>(sizeof(place)) && found != nullptr) {
        const size_t room = __builtin_strlen(text) + sizeof(place);
        char* own = new char[room];
        const int length =
            __builtin_snprintf(own, room, "%.*s (%s:%u)%s", static_cast<int>(found - text), text,
                               file_, static_cast<unsigned>(at.line()), found + size);
        status = lamella_fail(status, own, static_cast<size_t>(length));
        delete[] own;
      }
    }
    detail::check(status);
  }
  Library& implement(const char* name, CppFunction&& function) & {
    uint16_t key = static_cast<uint16_t>(function.key());
    lamella_kernel_description description = function.release(file_, line_);
    detail::check(lamella_library_implement(library_, name, key, &description));
    return *this;
  }

  friend class detail::LibraryInit;
  Library() = default;

  lamella_library* library_ = nullptr;
  const char* file_ = nullptr;
  uint32_t line_ = 0;
};

namespace detail {
// Runs a registration block before main or when a library is loaded. A static initialiser must not
// throw, so a failure is kept until the loading code asks for it; see lamella_defer_failure.
class LibraryInit {
 public:
  LibraryInit(Library::Kind kind, void (*body)(Library&), const char* name_space, BlockKey key,
              const char* file, uint32_t line) {
    try {
      check(lamella_handshake(LAMELLA_ABI_MAJOR, LAMELLA_ABI_MINOR, sizeof(lamella_tensor),
                              sizeof(lamella_value), sizeof(lamella_operator), file));
      library_ = Library(kind, name_space, key, file, line);
      body(library_);
    } catch (const std::exception& error) {
      lamella_defer_failure(error.what(), file, line);
    } catch (...) {
      lamella_defer_failure("unknown exception", file, line);
    }
  }

 private:
  Library library_;
};
}  // namespace detail

#define LAMELLA_CONCATENATE_(a, b) a##b
#define LAMELLA_CONCATENATE(a, b) LAMELLA_CONCATENATE_(a, b)

// Declares the operators of a namespace; one such block in a process.
#define LAMELLA_LIBRARY(ns, m)                                                                     \
  static void LAMELLA_LIBRARY_init_##ns(::lamella::Library&);                                      \
  static const ::lamella::detail::LibraryInit LAMELLA_LIBRARY_static_init_##ns(                    \
      ::lamella::Library::DEF, &LAMELLA_LIBRARY_init_##ns, #ns, std::nullopt, __FILE__, __LINE__); \
  void LAMELLA_LIBRARY_init_##ns(::lamella::Library& m)

// Adds operators to a namespace from another place.
#define LAMELLA_LIBRARY_FRAGMENT(ns, m) LAMELLA_LIBRARY_FRAGMENT_(ns, m, __COUNTER__)
#define LAMELLA_LIBRARY_FRAGMENT_(ns, m, id)                                                       \
  static void LAMELLA_CONCATENATE(LAMELLA_LIBRARY_FRAGMENT_init_##ns##_, id)(::lamella::Library&); \
  static const ::lamella::detail::LibraryInit LAMELLA_CONCATENATE(                                 \
      LAMELLA_LIBRARY_FRAGMENT_static_init_##ns##_, id)(                                           \
      ::lamella::Library::FRAGMENT,                                                                \
      &LAMELLA_CONCATENATE(LAMELLA_LIBRARY_FRAGMENT_init_##ns##_, id), #ns, std::nullopt,          \
      __FILE__, __LINE__);                                                                         \
  void LAMELLA_CONCATENATE(LAMELLA_LIBRARY_FRAGMENT_init_##ns##_, id)(::lamella::Library & m)

// Registers kernels of a namespace's operators for one dispatch key. Namespace _ is for fallbacks.
#define LAMELLA_LIBRARY_IMPL(ns, k, m) LAMELLA_LIBRARY_IMPL_(ns, k, m, __COUNTER__)
#define LAMELLA_LIBRARY_IMPL_(ns, k, m, id)                                                        \
  static void LAMELLA_CONCATENATE(LAMELLA_LIBRARY_IMPL_init_##ns##_##k##_,                         \
                                  id)(::lamella::Library&);                                        \
  static const ::lamella::detail::LibraryInit LAMELLA_CONCATENATE(                                 \
      LAMELLA_LIBRARY_IMPL_static_init_##ns##_##k##_, id)(                                         \
      ::lamella::Library::IMPL, &LAMELLA_CONCATENATE(LAMELLA_LIBRARY_IMPL_init_##ns##_##k##_, id), \
      #ns, ::lamella::DispatchKey::k, __FILE__, __LINE__);                                         \
  void LAMELLA_CONCATENATE(LAMELLA_LIBRARY_IMPL_init_##ns##_##k##_, id)(::lamella::Library & m)

}  // namespace lamella
