// AnyModule: a module of any class, called with arguments of the types that its forward() has; and
// AnyValue, an argument or result of any type.
#pragma once
#include <any>
#include <tuple>
#include <typeinfo>

#include "lamella/nn/module.h"

// Inside a class: the values of the last arguments of forward() where a call through AnyModule has
// fewer, as {position, AnyValue(value)}.
#define LAMELLA_FORWARD_DEFAULTS(...)                                                       \
  template <class>                                                                          \
  friend struct ::lamella::nn::detail::ForwardDefaults;                                     \
  std::vector<std::pair<unsigned int, ::lamella::nn::AnyValue>> forward_defaults_() const { \
    return {__VA_ARGS__};                                                                   \
  }

namespace lamella::nn {

class AnyValue {
 public:
  AnyValue(const AnyValue&) = default;
  AnyValue(AnyValue&&) = default;
  AnyValue& operator=(const AnyValue&) = default;
  AnyValue& operator=(AnyValue&&) = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, AnyValue>)
  explicit AnyValue(T&& value) : value_(std::decay_t<T>(std::forward<T>(value))) {}
  // Null where the value is of another type.
  template <class T>
  const T* try_get() const {
    return std::any_cast<T>(&value_);
  }
  template <class T>
  T get() const {
    const T* value = try_get<T>();
    LAMELLA_CHECK_TYPE(value != nullptr, "AnyValue: expected the type of the value, ",
                       detail::class_name(value_.type().name()), ", got ",
                       detail::class_name(typeid(T).name()));
    return *value;
  }
  const std::type_info& type_info() const { return value_.type(); }

 private:
  std::any value_;
};

namespace detail {
template <class M>
struct ForwardDefaults {
  static std::vector<std::pair<unsigned int, AnyValue>> of(const M& module) {
    if constexpr (requires { module.forward_defaults_(); }) return module.forward_defaults_();
    return {};
  }
};
// How the forward() of a module is called.
template <class M, class F = decltype(&M::forward)>
struct AnyCall;
template <class M, class B, class R, class... P>
struct AnyCall<M, R (B::*)(P...)> {
  static constexpr size_t most = sizeof...(P);
  template <size_t i>
  using Parameter = std::decay_t<std::tuple_element_t<i, std::tuple<P...>>>;

  static AnyValue run(M& module, std::vector<AnyValue>& given) {
    const size_t count = given.size();
    auto defaults = ForwardDefaults<M>::of(module);
    for (auto& [position, value] : defaults) {
      if (position == given.size()) given.push_back(value);
    }
    std::optional<AnyValue> result = call<most>(module, given);
    LAMELLA_CHECK(result, module.name(), ": forward: expected ",
                  defaults.empty() ? "" : str(most - defaults.size(), " to "), most,
                  " arguments, got ", count);
    return std::move(*result);
  }
  // Nullopt if forward() cannot be called with that many arguments.
  template <size_t n>
  static std::optional<AnyValue> call(M& module, const std::vector<AnyValue>& given) {
    if (given.size() == n) {
      return [&]<size_t... I>(std::index_sequence<I...>) -> std::optional<AnyValue> {
        if constexpr (requires { module.forward(std::declval<Parameter<I>>()...); }) {
          return AnyValue(module.forward(argument<Parameter<I>>(module, given[I], I)...));
        }
        return std::nullopt;
      }(std::make_index_sequence<n>());
    }
    if constexpr (n > 0) return call<n - 1>(module, given);
    return std::nullopt;
  }
  template <class T>
  static T argument(const M& module, const AnyValue& value, size_t i) {
    const T* typed = value.try_get<T>();
    LAMELLA_CHECK_TYPE(typed != nullptr, module.name(), ": forward: expected argument ", i,
                       " to be of type ", detail::class_name(typeid(T).name()), ", got ",
                       detail::class_name(value.type_info().name()));
    return *typed;
  }
};
template <class M, class B, class R, class... P>
struct AnyCall<M, R (B::*)(P...) const> : AnyCall<M, R (B::*)(P...)> {};
}  // namespace detail

LAMELLA_LAZY class AnyModuleOf {
 public:
  AnyModuleOf() = default;
  template <class M>
    requires std::is_base_of_v<Module, M>
  explicit AnyModuleOf(std::shared_ptr<M> module)
      : module_(module),
        type_(&typeid(M)),
        call_([m = module.get()](std::vector<AnyValue>& given) {
          return detail::AnyCall<M>::run(*m, given);
        }),
        wrap_([](const std::shared_ptr<ModuleOf<lazy_>>& other) {
          return AnyModuleOf(std::static_pointer_cast<M>(other));
        }) {}
  template <class M>
    requires std::is_base_of_v<Module, M>
  explicit AnyModuleOf(const M& module) : AnyModuleOf(std::make_shared<M>(module)) {}
  template <class M>
  explicit AnyModuleOf(const ModuleHolder<M>& holder) : AnyModuleOf(holder.ptr()) {}
  template <class M>
  AnyModuleOf& operator=(std::shared_ptr<M> module) {
    return *this = AnyModuleOf(std::move(module));
  }

  // The arguments must have the types that forward() takes, and R the one that it returns.
  template <class R = Tensor, class... A>
  R forward(A&&... inputs) const {
    return any_forward(std::forward<A>(inputs)...).template get<R>();
  }
  template <class... A>
  AnyValue any_forward(A&&... inputs) const {
    checked("forward");
    std::vector<AnyValue> given;
    given.reserve(sizeof...(A));
    (given.push_back(AnyValue(std::forward<A>(inputs))), ...);
    return call_(given);
  }
  bool is_empty() const { return module_ == nullptr; }
  std::shared_ptr<ModuleOf<lazy_>> ptr() const { return checked("ptr"); }
  template <class M>
  std::shared_ptr<typename detail::ContainedIn<M>::type> ptr() const {
    using Contained = typename detail::ContainedIn<M>::type;
    get<Contained>("ptr");
    return std::static_pointer_cast<Contained>(module_);
  }
  // The module as an M, or a holder M of it.
  template <class M>
  decltype(auto) get(const char* what = "get") const {
    using Contained = typename detail::ContainedIn<M>::type;
    auto* module = dynamic_cast<Contained*>(checked(what).get());
    LAMELLA_CHECK_TYPE(module != nullptr, "AnyModule: expected the type of the module, ",
                       module_->name(), ", got ", detail::class_name(typeid(Contained).name()));
    if constexpr (std::is_same_v<Contained, M>) {
      return static_cast<M&>(*module);
    } else {
      return M(std::static_pointer_cast<Contained>(module_));
    }
  }
  const std::type_info& type_info() const {
    checked("type_info");
    return *type_;
  }
  AnyModuleOf clone(const std::optional<Device>& device = std::nullopt) const {
    return is_empty() ? AnyModuleOf() : wrap_(module_->clone(device));
  }

 private:
  const std::shared_ptr<ModuleOf<lazy_>>& checked(const char* what) const {
    LAMELLA_CHECK(module_ != nullptr, "AnyModule: ", what, ": expected a module, got an empty one");
    return module_;
  }

  std::shared_ptr<ModuleOf<lazy_>> module_;
  const std::type_info* type_ = nullptr;
  std::function<AnyValue(std::vector<AnyValue>&)> call_;
  // Another module of the same class.
  AnyModuleOf (*wrap_)(const std::shared_ptr<ModuleOf<lazy_>>& other) = nullptr;
};
using AnyModule = AnyModuleOf<>;

}  // namespace lamella::nn
