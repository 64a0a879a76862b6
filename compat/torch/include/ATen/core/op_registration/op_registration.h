// torch::RegisterOperators, c10::RegisterOperators: PyTorch's older API to register operators, one
// call for each, in any namespace.
//
//   static auto registry = torch::RegisterOperators().op("mine::twice", &twice);
#pragma once
#include <torch/library.h>

namespace c10 {

class RegisterOperators {
 public:
  // The options of one registration: its kernels, each for one key or for all.
  class Options {
   public:
    // Registers a function for one key.
    template <class Function, Function* f>
    Options&& kernel(DispatchKey key) && {
      return std::move(*this).add(key, CppFunction(f));
    }
    template <class Function, Function* f>
    Options&& catchAllKernel() && {
      return std::move(*this).add(DispatchKey::None, CppFunction(f));
    }
    // Registers a functor that is constructed from the arguments.
    template <class Functor, class... A>
    Options&& kernel(DispatchKey key, A&&... arguments) && {
      return std::move(*this).add(key, CppFunction(make<Functor>(std::forward<A>(arguments)...)));
    }
    template <class Functor, class... A>
    Options&& catchAllKernel(A&&... arguments) && {
      return std::move(*this).add(DispatchKey::None,
                                  CppFunction(make<Functor>(std::forward<A>(arguments)...)));
    }
    // Registers a lambda or a function pointer.
    template <class F>
    Options&& kernel(DispatchKey key, F&& f) && {
      return std::move(*this).add(key, CppFunction(std::forward<F>(f)));
    }
    template <class F>
    Options&& catchAllKernel(F&& f) && {
      return std::move(*this).add(DispatchKey::None, CppFunction(std::forward<F>(f)));
    }
    LAMELLA_LAZY Options&& schema(const std::string& text) && {
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
  // kernel for all backends, or nothing may follow.
  LAMELLA_LAZY RegisterOperators&& op(const std::string& name_or_schema, Options&& options) && {
    guarded(name_or_schema, [&](Library& library, const std::string& text) {
      register_all(library, text, options);
    });
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
  // A static initialiser must not throw, so a failure is kept for the loader, as in Library's
  // blocks.
  template <class F>
  void guarded(const std::string& name_or_schema, F&& body) {
    try {
      size_t colons = name_or_schema.find("::");
      LAMELLA_CHECK(colons != std::string::npos,
                    "RegisterOperators: expected a name such as "
                    "'mine::twice', got '",
                    name_or_schema, "'");
      std::string name_space = name_or_schema.substr(0, colons);
      libraries_.emplace_back(Library::FRAGMENT, name_space.c_str(), std::nullopt, __FILE__,
                              __LINE__);
      body(libraries_.back(), name_or_schema.substr(colons + 2));
    } catch (const std::exception& error) {
      lamella_defer_failure(error.what(), __FILE__, __LINE__);
    }
  }
  LAMELLA_LAZY static void register_all(Library& library, const std::string& text,
                                        Options& options) {
    std::string name = text.substr(0, text.find('('));
    bool defined = name.size() != text.size();
    if (defined) library.def(text);
    for (size_t i = 0; i < options.kernels_.size(); ++i) {
      CppFunction kernel = std::move(options.kernels_[i]).with_key(options.keys_[i]);
      // Without a schema, the first kernel's signature becomes the schema.
      if (defined) {
        library.impl(name, std::move(kernel));
      } else {
        library.def(name.c_str(), std::move(kernel));
      }
      defined = true;
    }
  }

  std::vector<Library> libraries_;
};

}  // namespace c10
