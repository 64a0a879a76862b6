// torch::RegisterOperators, c10::RegisterOperators: PyTorch's older API to register operators, one
// call for each, in any namespace.
//
//   static auto registry = torch::RegisterOperators().op("mine::twice", &twice);
#pragma once
#include <dlfcn.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/library.h>
#include <torch/unordered_map_values.h>
#include <unwind.h>

namespace lamella::detail {
// Whether the caller runs in an initialiser of a library that is being loaded, where an exception
// would end the program.
// The dynamic linker calls such initialisers, so one of the callers is its code. The initialisers
// of a program itself are called by the C library instead; what they throw ends the program.
LAMELLA_LAZY LAMELLA_COLD bool inside_initialiser() {
  bool found = false;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* result) {
        Dl_info info;
        void* address = reinterpret_cast<void*>(_Unwind_GetIP(context));
        if (address == nullptr || dladdr(address, &info) == 0) return _URC_NO_REASON;
        if (std::string_view(info.dli_fname).find("/ld-linux") == std::string_view::npos) {
          return _URC_NO_REASON;
        }
        *static_cast<bool*>(result) = true;
        return _URC_END_OF_STACK;
      },
      &found);
  return found;
}

}  // namespace lamella::detail

namespace c10 {

class RegisterOperators {
 public:
  // The options of one registration: its kernels, each for one key or for all.
  class Options {
   public:
    // Registers a function, typed or boxed, for one key.
    template <class Function, Function* f>
    Options&& kernel(DispatchKey key) && {
      return std::move(*this).add(key, CppFunction(f));
    }
    template <class Function, Function* f>
    Options&& catchAllKernel() && {
      return std::move(*this).add(DispatchKey::None, CppFunction(f));
    }
    template <auto* f>
    Options&& kernel(DispatchKey key) && {
      return std::move(*this).add(key, CppFunction(f));
    }
    template <auto* f>
    Options&& catchAllKernel() && {
      return std::move(*this).add(DispatchKey::None, CppFunction(f));
    }
    // Registers a functor that is constructed from the arguments.
    template <class Functor, class... A>
    Options&& kernel(DispatchKey key, A&&... arguments) && {
      return std::move(*this).add(key, CppFunction(make<Functor>(std::forward<A>(arguments)...)));
    }
    // Registers a lambda or a function pointer.
    template <class F>
    Options&& kernel(DispatchKey key, F&& f) && {
      return std::move(*this).add(key, CppFunction(std::forward<F>(f)));
    }
    template <class... Functor, class... A>
    Options&& catchAllKernel(A&&... arguments) && {
      return std::move(*this).template kernel<Functor...>(DispatchKey::None,
                                                          std::forward<A>(arguments)...);
    }
    LAMELLA_LAZY Options&& schema(const std::string& text) && {
      LAMELLA_CHECK(schema_.empty(), "RegisterOperators: expected one schema, got '", schema_,
                    "' and '", text, "'");
      schema_ = text;
      return std::move(*this);
    }
    // Ignored: the schema already says what the operator aliases.
    template <class Kind>
    Options&& aliasAnalysis(Kind) && {
      return std::move(*this);
    }

   private:
    friend class RegisterOperators;
    template <class Functor, class... A>
    static Functor make(A&&... arguments) {
      return Functor{std::forward<A>(arguments)...};
    }
    LAMELLA_LAZY Options&& add(DispatchKey key, CppFunction&& kernel) && {
      keys_.push_back(key);
      kernels_.push_back(std::move(kernel));
      return std::move(*this);
    }

    std::string schema_;
    std::vector<DispatchKey> keys_;
    std::vector<CppFunction> kernels_;
  };
  static Options options() { return Options(); }

  RegisterOperators() = default;
  RegisterOperators(RegisterOperators&&) = default;
  RegisterOperators& operator=(RegisterOperators&&) = default;
  // RegisterOperators("mine::twice", &twice)
  template <class F>
  explicit RegisterOperators(const std::string& name_or_schema, F&& f) {
    std::move(*this).op(name_or_schema, std::forward<F>(f));
  }

  // The first argument is a schema, or a name whose schema is inferred from the kernel. Options, a
  // kernel for all backends, or nothing may follow. Throws what is wrong with the registration;
  // while a library is being loaded, where nothing may throw, the loader reports it.
  LAMELLA_LAZY RegisterOperators&& op(const std::string& name_or_schema, Options&& options) && {
    try {
      LAMELLA_CHECK(options.schema_.empty() || options.schema_ == name_or_schema,
                    "RegisterOperators: expected one schema, got '", name_or_schema, "' and '",
                    options.schema_, "'");
      register_all(name_or_schema, options);
    } catch (const std::exception& error) {
      if (!lamella::detail::inside_initialiser()) throw;
      lamella_defer_failure(error.what(), __FILE__, __LINE__);
    }
    return std::move(*this);
  }
  LAMELLA_LAZY RegisterOperators&& op(Options&& options) && {
    std::string schema = options.schema_;
    return std::move(*this).op(schema, std::move(options));
  }
  LAMELLA_LAZY RegisterOperators&& op(const std::string& schema) && {
    return std::move(*this).op(schema, Options());
  }
  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, Options>)
  RegisterOperators&& op(const std::string& name_or_schema, F&& f,
                         Options&& options = Options()) && {
    return std::move(*this).op(name_or_schema,
                               std::move(options).catchAllKernel(std::forward<F>(f)));
  }
  // Overloads for a named object to which registrations are added.
  template <class... A>
  RegisterOperators& op(const std::string& name_or_schema, A&&... rest) & {
    std::move(*this).op(name_or_schema, std::forward<A>(rest)...);
    return *this;
  }

 private:
  struct LibraryObject : intrusive_ptr_target {
    explicit LibraryObject(const std::string& name_space)
        : library(Library::FRAGMENT, name_space.c_str(), std::nullopt, __FILE__, __LINE__) {}
    // Also where weak references keep the object.
    void release_resources() override { library.reset(); }
    Library library;
  };
  using Block = intrusive_ptr<LibraryObject>;
  struct Defined {
    std::string schema;
    weak_intrusive_ptr<LibraryObject> block;
  };
  // A definition lives as long as any of the registrations that state it.
  LAMELLA_LAZY static Block define(const std::string& name_space, const std::string& schema) {
    static std::vector<Defined> all;
    std::string qualified = name_space + "::" + schema;
    std::erase_if(all, [](const Defined& one) { return one.block.expired(); });
    for (const Defined& one : all) {
      if (one.schema == qualified) return one.block.lock();
    }
    Block block = make_intrusive<LibraryObject>(name_space);
    block->library.def(schema);
    all.push_back({std::move(qualified), weak_intrusive_ptr<LibraryObject>(block)});
    return block;
  }
  LAMELLA_LAZY void register_all(const std::string& qualified, Options& options) {
    size_t colons = qualified.substr(0, qualified.find('(')).find("::");
    LAMELLA_CHECK(!qualified.empty(),
                  "In operator registration: Tried to register an operator without specifying a "
                  "schema or operator name.");
    LAMELLA_CHECK(colons != std::string::npos,
                  "RegisterOperators: expected a schema, or a name such as 'mine::twice', got '",
                  qualified, "'");
    std::string name_space = qualified.substr(0, colons), text = qualified.substr(colons + 2);
    std::string name = text.substr(0, text.find('('));
    const std::vector<DispatchKey>& keys = options.keys_;
    for (size_t i = 0; i < keys.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const bool all = keys[i] == DispatchKey::None;
        LAMELLA_CHECK(keys[i] != keys[k], "In operator registration: Tried to register multiple ",
                      all ? "catch-all kernels" : "kernels with same dispatch key ",
                      all ? "" : toString(keys[i]), " for operator schema ", qualified);
      }
    }
    // Without a schema, the signature of the kernels becomes the schema.
    size_t count = options.kernels_.size(), first = count;
    for (size_t i = 0; i < count; ++i) {
      std::string_view signature = options.kernels_[i].signature();
      if (signature.empty()) continue;
      if (first == count) first = i;
      LAMELLA_CHECK(signature == options.kernels_[first].signature(), qualified,
                    ": expected kernels of one signature. Mismatch in kernel C++ signatures of ",
                    toString(keys[first]), " and ", toString(keys[i]));
    }
    bool infer = name.size() == text.size();
    LAMELLA_CHECK(!infer || first != count, "Cannot infer operator schema ",
                  count == 0 ? "" : "for this kind of kernel ", "in registration of operator ",
                  qualified, " because there is no kernel ",
                  count == 0 ? "specified." : "whose types tell it; write the schema out");
    std::vector<Block> blocks{infer ? make_intrusive<LibraryObject>(name_space)
                                    : define(name_space, text)};
    if (infer) {
      blocks[0]->library.def(name.c_str(),
                             std::move(options.kernels_[first]).with_key(options.keys_[first]));
    }
    for (size_t i = 0; i < count; ++i) {
      if (infer && i == first) continue;
      blocks.push_back(make_intrusive<LibraryObject>(name_space));
      blocks.back()->library.impl(name, std::move(options.kernels_[i]).with_key(options.keys_[i]));
    }
    blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  }

  std::vector<Block> blocks_;
};

}  // namespace c10
// What Dispatcher::addRegistrationListener() tells of operators.
namespace c10 {
class OpRegistrationListener {
 public:
  virtual ~OpRegistrationListener() = default;
  virtual void onOperatorRegistered(const OperatorHandle& op) = 0;
  virtual void onOperatorDeregistered(const OperatorHandle& op) = 0;
};
}  // namespace c10
