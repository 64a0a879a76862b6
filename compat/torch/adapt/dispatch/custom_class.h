// class_<T>: registers C++ classes whose objects operators take and return and Python can create.
//
//   struct Stack : lamella::CustomClassHolder {
//     explicit Stack(std::vector<std::string> items);
//     void push(std::string item);
//   };
//   static auto registry = lamella::class_<Stack>("mine", "Stack")
//                              .def(lamella::init<std::vector<std::string>>())
//                              .def("push", &Stack::push);
//
// Schemas call it __torch__.torch.classes.mine.Stack, Python lamella.classes.mine.Stack.
//
// Note [Methods are operators]
//   The method `push` of the class is the operator mine::Stack.push, with the object as its first
//   argument `self`; the constructor is mine::Stack.__init__, which returns the object. So calls
//   of methods are parsed, checked, traced and reported as those of all operators are.
#pragma once
#include "lamella/core/intrusive_ptr.h"
#include "lamella/dispatch/library.h"
#include "lamella/dispatch/whole_values.h"

namespace lamella {

namespace abi {
template <class T>
struct Param<intrusive_ptr<T>> : ValueParam<intrusive_ptr<T>> {};
template <class T>
struct FromValue<intrusive_ptr<T>> {
  static intrusive_ptr<T> get(const IValue& v) { return v.toCustomClass<T>(); }
};
template <class T>
struct SchemaText<intrusive_ptr<T>> {
  static std::string get() { return detail::known_class_name<std::remove_const_t<T>>(); }
};
template <class T>
struct Param<std::vector<intrusive_ptr<T>>> : ValueParam<std::vector<intrusive_ptr<T>>> {};
template <class T>
struct Param<std::optional<intrusive_ptr<T>>> : ValueParam<std::optional<intrusive_ptr<T>>> {};
}  // namespace abi

// The name of an argument, and its default: arg("size") = 3; arg("mask") = arg::none().
struct arg {
  explicit arg(std::string name) : name(std::move(name)) {}
  arg operator=(const IValue& value) const {
    arg result = *this;
    result.value = value;
    result.has_value = true;
    return result;
  }
  static IValue none() { return IValue(); }

  std::string name;
  IValue value;  // the default, if there is one
  bool has_value = false;
};

namespace detail {

template <class... A>
struct Constructor {};
template <class F>
struct Factory {
  F make;
};

// A default as schemas spell it. TypeError for a value that no schema can spell.
LAMELLA_LAZY std::string default_text(const IValue& value) {
  auto listed = [](auto&& entries, auto&& text) {
    std::string all = "[";
    for (const auto& entry : entries) all += (all.size() == 1 ? "" : ", ") + text(entry);
    return all + "]";
  };
  auto number = [](double x) {
    char text[40];
    __builtin_snprintf(text, sizeof(text), "%.17g", x);
    bool whole = std::string_view(text).find_first_not_of("-0123456789") == std::string_view::npos;
    return std::string(text) + (whole ? ".0" : "");
  };
  switch (value.tag()) {
    case LAMELLA_NONE:
      return "None";
    case LAMELLA_BOOL:
      return value.toBool() ? "True" : "False";
    case LAMELLA_INT:
      return std::to_string(value.toInt());
    case LAMELLA_DOUBLE:
      return number(value.toDouble());
    case LAMELLA_STRING: {
      std::string text = "\"";
      for (char c : value.toStringView()) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
      }
      return text + '"';
    }
    case LAMELLA_INT_LIST:
      return listed(value.toIntList(), [](int64_t x) { return std::to_string(x); });
    case LAMELLA_DOUBLE_LIST:
      return listed(value.toDoubleList(), number);
    default:
      throw_tag("a default that a schema can spell", value.tag());
  }
}

// Whether an operator's first parameter is an object of T.
template <class T, class Signature>
inline constexpr bool takes_self = false;
template <class T, class R, class First, class... A>
inline constexpr bool takes_self<T, R(First, A...)> =
    std::is_same_v<abi::Decayed<First>, intrusive_ptr<T>>;

// A member function as a function of the object.
template <class T, class M>
struct MethodCall;
template <class T, class R, class... A, bool kNoexcept>
struct MethodCall<T, R (T::*)(A...) noexcept(kNoexcept)> {
  R (T::*method)(A...);
  std::decay_t<R> operator()(const intrusive_ptr<T>& self, A... arguments) {
    return ((*self).*method)(std::forward<A>(arguments)...);
  }
};
template <class T, class R, class... A, bool kNoexcept>
struct MethodCall<T, R (T::*)(A...) const noexcept(kNoexcept)> {
  R (T::*method)(A...) const;
  std::decay_t<R> operator()(const intrusive_ptr<T>& self, A... arguments) {
    return ((*self).*method)(std::forward<A>(arguments)...);
  }
};
// The type of a method or member, as one of T where T only inherits it.
template <class M, class T>
struct AsMemberOf;
template <class C, class R, class... A, bool kNoexcept, class T>
struct AsMemberOf<R (C::*)(A...) noexcept(kNoexcept), T> {
  using type = R (T::*)(A...);
};
template <class C, class R, class... A, bool kNoexcept, class T>
struct AsMemberOf<R (C::*)(A...) const noexcept(kNoexcept), T> {
  using type = R (T::*)(A...) const;
};

// Wraps a function that returns a dtype as one that returns its number, as Python gets it in
// PyTorch.
template <class F, class Fn>
struct DtypeAsNumber {
  static constexpr bool applies = false;
};
template <class F, class... A>
struct DtypeAsNumber<F, ScalarType(A...)> {
  static constexpr bool applies = true;
  int64_t operator()(A... arguments) {
    return static_cast<int64_t>(function(std::forward<A>(arguments)...));
  }
  F function;
};

// The registrations of the classes of this library, which end with it; each stays where it is.
struct ClassRegistrations {
  Library* add(Library library) {
    all.push_back(new Library(std::move(library)));
    return all.back();
  }
  ~ClassRegistrations() {
    for (; !all.empty(); all.pop_back()) delete all.back();
  }
  std::vector<Library*> all;
};
LAMELLA_HIDDEN inline ClassRegistrations& class_registrations() {
  static ClassRegistrations all;
  return all;
}

}  // namespace detail

// Names the constructor that Python calls, by its parameters or by a function that makes the
// object.
template <class... A>
constexpr detail::Constructor<A...> init() {
  return {};
}
template <class F>
detail::Factory<std::decay_t<F>> init(F&& make) {
  return {std::forward<F>(make)};
}

// Registers a class that derives from CustomClassHolder; made in a static initialiser, or by
// Library::class_. A failure is kept until the loading code asks for it, as with LAMELLA_LIBRARY.
template <class T>
class class_ {
  static_assert(std::is_base_of_v<CustomClassHolder, T>,
                "class_<T>: expected T to derive from torch::CustomClassHolder");

 public:
  class_(const std::string& name_space, const std::string& name, const std::string& = "")
      : name_(name) {
    guarded([&] {
      check_word(name_space);
      check_word(name);
      static const std::string qualified = "__torch__.torch.classes." + name_space + "." + name;
      detail::class_name<T> = qualified.c_str();
      library_ = detail::class_registrations().add(
          Library(Library::FRAGMENT, name_space.c_str(), std::nullopt, __FILE__, __LINE__));
    });
  }

  // .def(init<int64_t, std::string>()): the constructor with these parameters.
  template <class... A>
  class_& def(detail::Constructor<A...>, const std::string& = "",
              std::initializer_list<arg> arguments = {}) {
    return add(
        "__init__", [](A... values) { return make_intrusive<T>(std::move(values)...); }, arguments);
  }
  // .def(init([](int64_t size) { return make_intrusive<T>(size); }))
  template <class F>
  class_& def(detail::Factory<F> factory, const std::string& = "",
              std::initializer_list<arg> arguments = {}) {
    return add("__init__", std::move(factory.make), arguments);
  }
  // A method: a member function, or a function whose first parameter is the object.
  template <class F>
  class_& def(const std::string& name, F f, const std::string& = "",
              std::initializer_list<arg> arguments = {}) {
    if constexpr (std::is_member_function_pointer_v<F>) {
      using M = typename detail::AsMemberOf<F, T>::type;
      return add(name, detail::MethodCall<T, M>{f}, arguments);
    } else {
      using Fn = typename detail::FunctionType<std::decay_t<F>>::type;
      static_assert(detail::takes_self<T, Fn>,
                    "class_::def: expected a function whose first parameter is "
                    "const c10::intrusive_ptr<T>&; def_static is for others");
      return add(name, std::move(f), arguments);
    }
  }
  // A function of the class, called without an object.
  template <class F>
  class_& def_static(const std::string& name, F f, const std::string& = "") {
    return add(name, std::move(f), {});
  }
  // An attribute, by functions that read and write it.
  template <class Get>
  class_& def_property(const std::string& name, Get get, const std::string& = "") {
    return def(name + "_getter", std::move(get));
  }
  template <class Get, class Set>
    requires(!std::is_convertible_v<Set, std::string>)
  class_& def_property(const std::string& name, Get get, Set set, const std::string& = "") {
    def(name + "_getter", std::move(get));
    return def(name + "_setter", std::move(set));
  }
  // An attribute that is a member of the object.
  template <class M>
  class_& def_readonly(const std::string& name, M T::*member) {
    return def(name + "_getter",
               [member](const intrusive_ptr<T>& self) { return (*self).*member; });
  }
  template <class M>
  class_& def_readwrite(const std::string& name, M T::*member) {
    def_readonly(name, member);
    return def(name + "_setter", [member](const intrusive_ptr<T>& self, M value) {
      (*self).*member = std::move(value);
    });
  }
  // For copies and files: the state of an object, and an object of a state.
  template <class Get, class Set>
  class_& def_pickle(Get get, Set set) {
    def("__getstate__", std::move(get));
    return add("__setstate__", std::move(set), {});
  }

 private:
  template <class F>
  void guarded(F&& body) {
    try {
      body();
    } catch (const std::exception& error) {
      lamella_defer_failure(error.what(), __FILE__, __LINE__);
    }
  }
  static void check_word(const std::string& word) {
    bool fits = !word.empty() && (word[0] < '0' || word[0] > '9');
    for (char c : word) {
      fits = fits && (c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                      (c >= 'A' && c <= 'Z'));
    }
    LAMELLA_CHECK(fits, "class_: expected names of letters, digits and '_', got '", word, "'");
  }
  // "_0", or what arguments say, with "self" first for a method.
  static std::vector<std::string> names_of(size_t count, bool self,
                                           std::initializer_list<arg> arguments) {
    std::vector<std::string> names;
    if (self) names.emplace_back("self");
    LAMELLA_CHECK(arguments.size() == 0 || names.size() + arguments.size() == count,
                  "expected as many torch::arg as arguments, ", count - names.size(), ", got ",
                  arguments.size());
    for (const arg& given : arguments) {
      names.push_back(given.name);
      if (given.has_value) names.back() += '=' + detail::default_text(given.value);
    }
    while (names.size() < count) names.push_back("_" + std::to_string(names.size()));
    return names;
  }
  template <class R, class... A>
  static std::string schema_of(R (*)(A...), std::initializer_list<arg> arguments) {
    bool self = detail::takes_self<T, R(A...)>;
    std::vector<std::string> names = names_of(sizeof...(A), self, arguments);
    return abi::SignatureText<R(A...)>::get(names.data());
  }
  template <class F>
  class_& add(const std::string& name, F f, std::initializer_list<arg> arguments) {
    if (library_ == nullptr) return *this;  // registering the class failed
    using Fn = typename detail::FunctionType<std::decay_t<F>>::type;
    using Number = detail::DtypeAsNumber<F, Fn>;
    if constexpr (Number::applies) {
      return add(name, Number{std::move(f)}, arguments);
    } else {
      add_checked<Fn>(name, std::move(f), arguments);
      return *this;
    }
  }
  template <class Fn, class F>
  void add_checked(const std::string& name, F f, std::initializer_list<arg> arguments) {
    guarded([&] {
      check_word(name);
      std::string full = name_ + "." + name;
      try {
        full += schema_of(static_cast<std::add_pointer_t<Fn>>(nullptr), arguments);
      } catch (const Error& error) {
        throw TypeError(str("class_: ", full, ": ", error.what()));
      }
      library_->def(full.c_str(), std::move(f));
    });
  }

  Library* library_ = nullptr;
  std::string name_;
};

template <class T>
lamella::class_<T> Library::class_(const char* name, const char* doc) & {
  return lamella::class_<T>(lamella_library_namespace(library_), name, doc);
}

// An object of a registered class, made of the arguments, as a value.
template <class T, class... A>
IValue make_custom_class(A&&... arguments) {
  return IValue(make_intrusive<T>(std::forward<A>(arguments)...));
}

}  // namespace lamella
