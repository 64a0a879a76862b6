// The modules of lamella::nn without own parameters: activations, dropout, pooling, losses, and the
// containers Sequential and ModuleList.
#pragma once
#include "lamella/nn/any_module.h"
#include "lamella/nn/layers.h"

namespace lamella::nn {

// ---- Of functions ------------------------------------------------------------------------------

// The base of modules without parameters.
template <class Self, class Options_>
class WithOptions : public Cloneable<Self> {
 public:
  using Options = Options_;
  WithOptions()
    requires std::is_default_constructible_v<Options>
  = default;
  explicit WithOptions(const Options& given) : options(detail::checked(given)) {}
  void reset() override {}
  Options options;
};
// The members of a class derived from it, whose options print as `...`.
#define LAMELLA_WITH_OPTIONS(Name, Options, ...)         \
 public:                                                 \
  using WithOptions<Name##ImplOf, Options>::WithOptions; \
  using WithOptions<Name##ImplOf, Options>::options;     \
  LAMELLA_SHOWN(#Name __VA_OPT__(, ) __VA_ARGS__)
// A module that calls a function with its input and its options.
#define LAMELLA_OF_OPTIONS(Name, Options, call, ...)                                   \
  LAMELLA_LAZY class Name##ImplOf : public WithOptions<Name##ImplOf<lazy_>, Options> { \
    LAMELLA_WITH_OPTIONS(Name, Options, __VA_ARGS__)                                   \
    Tensor forward(const Tensor& input) { return call; }                               \
  };                                                                                   \
  LAMELLA_LAZY_MODULE(Name)
struct NoOptions {};
#define LAMELLA_OF_INPUT(Name, call) LAMELLA_OF_OPTIONS(Name, NoOptions, call)
using ReLU6Options = ReLUOptions;
using SELUOptions = ReLUOptions;
LAMELLA_OF_OPTIONS(ReLU, ReLUOptions, F::relu(input, options), detail::inplace_shown(options))
LAMELLA_OF_OPTIONS(ReLU6, ReLUOptions, F::relu6(input, options), detail::inplace_shown(options))
LAMELLA_OF_OPTIONS(SELU, ReLUOptions, F::selu(input, options), detail::inplace_shown(options))
LAMELLA_OF_OPTIONS(LeakyReLU, LeakyReLUOptions, F::leaky_relu(input, options),
                   "negative_slope=", options.negative_slope(),
                   detail::inplace_shown(options, ", "))
LAMELLA_OF_OPTIONS(ELU, ELUOptions, F::elu(input, options), "alpha=", options.alpha(),
                   detail::inplace_shown(options, ", "))
LAMELLA_OF_OPTIONS(CELU, CELUOptions, F::celu(input, options), "alpha=", options.alpha(),
                   detail::inplace_shown(options, ", "))
LAMELLA_OF_OPTIONS(GELU, GELUOptions, F::gelu(input, options))
LAMELLA_OF_OPTIONS(GLU, GLUOptions, F::glu(input, options), "dim=", options.dim())
LAMELLA_OF_OPTIONS(Softplus, SoftplusOptions, F::softplus(input, options), "beta=", options.beta(),
                   ", threshold=", options.threshold())
LAMELLA_OF_OPTIONS(Hardtanh, HardtanhOptions, F::hardtanh(input, options),
                   "min_val=", options.min_val(), ", max_val=", options.max_val(),
                   detail::inplace_shown(options, ", "))
LAMELLA_OF_OPTIONS(Softmax, SoftmaxOptions, F::softmax(input, options), "dim=", options.dim())
LAMELLA_OF_OPTIONS(LogSoftmax, LogSoftmaxOptions, F::log_softmax(input, options),
                   "dim=", options.dim())
LAMELLA_OF_INPUT(Sigmoid, input.sigmoid())
LAMELLA_OF_INPUT(Tanh, input.tanh())
LAMELLA_OF_INPUT(SiLU, F::silu(input))
LAMELLA_OF_INPUT(Mish, F::mish(input))
LAMELLA_OF_INPUT(LogSigmoid, F::logsigmoid(input))
LAMELLA_OF_INPUT(Softsign, F::softsign(input))
LAMELLA_OF_INPUT(Identity, input)
LAMELLA_OF_OPTIONS(Flatten, FlattenOptions, input.flatten(options.start_dim(), options.end_dim()),
                   "start_dim=", options.start_dim(), ", end_dim=", options.end_dim())
LAMELLA_OF_OPTIONS(Dropout, DropoutOptions,
                   F::dropout(input, F::DropoutFuncOptions()
                                         .p(options.p())
                                         .training(this->is_training())
                                         .inplace(options.inplace())),
                   "p=", options.p(), ", inplace=", options.inplace())
// Dropout of whole channels.
#define LAMELLA_CHANNEL_DROPOUT(D)                                              \
  using Dropout##D##dOptions = DropoutOptions;                                  \
  LAMELLA_OF_OPTIONS(Dropout##D##d, DropoutOptions,                             \
                     F::dropout##D##d(input, F::DropoutFuncOptions()            \
                                                 .p(options.p())                \
                                                 .training(this->is_training()) \
                                                 .inplace(options.inplace())),  \
                     "p=", options.p(), ", inplace=", options.inplace())
LAMELLA_CHANNEL_DROPOUT(2)
LAMELLA_CHANNEL_DROPOUT(3)
#undef LAMELLA_CHANNEL_DROPOUT

// ---- Windows -----------------------------------------------------------------------------------

// Maximum pooling, which can return the indices of the maxima as well.
#define LAMELLA_MAXIMUM(Name, Options, function, ...)                                  \
  LAMELLA_LAZY class Name##ImplOf : public WithOptions<Name##ImplOf<lazy_>, Options> { \
    LAMELLA_WITH_OPTIONS(Name, Options, __VA_ARGS__)                                   \
    Tensor forward(const Tensor& input) { return F::function(input, options); }        \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input) {             \
      return F::function##_with_indices(input, options);                               \
    }                                                                                  \
  };                                                                                   \
  LAMELLA_LAZY_MODULE(Name)
#define LAMELLA_POOL(D)                                                                    \
  using MaxPool##D##dOptions = PoolOptions<D>;                                             \
  using AvgPool##D##dOptions = PoolOptions<D>;                                             \
  using AdaptiveAvgPool##D##dOptions = AdaptivePoolOptions<D>;                             \
  using AdaptiveMaxPool##D##dOptions = AdaptivePoolOptions<D>;                             \
  LAMELLA_MAXIMUM(MaxPool##D##d, PoolOptions<D>, max_pool##D##d,                           \
                  "kernel_size=", options.kernel_size(), ", stride=", options.stride(),    \
                  ", padding=", options.padding(), ", dilation=", options.dilation(),      \
                  ", ceil_mode=", options.ceil_mode())                                     \
  LAMELLA_OF_OPTIONS(AvgPool##D##d, PoolOptions<D>, F::avg_pool##D##d(input, options),     \
                     "kernel_size=", options.kernel_size(), ", stride=", options.stride(), \
                     ", padding=", options.padding())                                      \
  LAMELLA_OF_OPTIONS(AdaptiveAvgPool##D##d, AdaptivePoolOptions<D>,                        \
                     F::adaptive_avg_pool##D##d(input, options),                           \
                     "output_size=", detail::shown_adaptive(options.output_size()))        \
  LAMELLA_MAXIMUM(AdaptiveMaxPool##D##d, AdaptivePoolOptions<D>, adaptive_max_pool##D##d,  \
                  "output_size=", detail::shown_adaptive(options.output_size()))
LAMELLA_POOL(1)
LAMELLA_POOL(2)
LAMELLA_POOL(3)
#undef LAMELLA_POOL

// ---- Losses ------------------------------------------------------------------------------------

// A loss of the tensors in `names`, most often input and target.
#define LAMELLA_LOSS_OF(Name, types, names, function, ...)                                   \
  LAMELLA_LAZY class Name##ImplOf : public WithOptions<Name##ImplOf<lazy_>, Name##Options> { \
    LAMELLA_WITH_OPTIONS(Name, Name##Options, __VA_ARGS__)                                   \
    Tensor forward types { return F::function names; }                                       \
  };                                                                                         \
  LAMELLA_LAZY_MODULE(Name)
#define LAMELLA_LOSS(Name, function, ...)                                                      \
  LAMELLA_LOSS_OF(Name, (const Tensor& input, const Tensor& target), (input, target, options), \
                  function __VA_OPT__(, ) __VA_ARGS__)
using L1LossOptions = LossOptions;
using MSELossOptions = LossOptions;
using BCELossOptions = LossOptions;
using SmoothL1LossOptions = SmoothLossOptions;
using HuberLossOptions = SmoothLossOptions;
using KLDivLossOptions = KLDivOptions;
using CrossEntropyLossOptions = ClassLossOptions;
using NLLLossOptions = ClassLossOptions;
using BCEWithLogitsLossOptions = LogitsLossOptions;
LAMELLA_LOSS(L1Loss, l1_loss)
LAMELLA_LOSS(MSELoss, mse_loss)
LAMELLA_LOSS(SmoothL1Loss, smooth_l1_loss)
LAMELLA_LOSS(HuberLoss, huber_loss)
LAMELLA_LOSS(KLDivLoss, kl_div)
LAMELLA_LOSS(CrossEntropyLoss, cross_entropy)
LAMELLA_LOSS(NLLLoss, nll_loss)
LAMELLA_LOSS(BCELoss, binary_cross_entropy)
LAMELLA_LOSS(BCEWithLogitsLoss, binary_cross_entropy_with_logits)

// A function of a tensor as a module; further arguments are passed on at each call.
LAMELLA_LAZY class FunctionalImplOf : public Cloneable<FunctionalImplOf<lazy_>> {
 public:
  using Function = std::function<Tensor(Tensor)>;
  explicit FunctionalImplOf(Function function) : function_(std::move(function)) {}
  template <class F, class... A>
    requires(sizeof...(A) > 0)
  explicit FunctionalImplOf(F function, A... arguments)
      : function_([=](Tensor input) { return function(input, arguments...); }) {}
  void reset() override {}
  LAMELLA_SHOWN("Functional")
  bool is_serializable() const override { return false; }
  Tensor forward(Tensor input) { return function_(std::move(input)); }
  Tensor operator()(Tensor input) { return forward(std::move(input)); }

 private:
  Function function_;
};
LAMELLA_LAZY_MODULE(Functional)

// ---- Of modules --------------------------------------------------------------------------------

// A named module of a Sequential.
LAMELLA_LAZY class NamedAnyModuleOf {
 public:
  template <class M>
  NamedAnyModuleOf(std::string name, M&& module)
      : name_(std::move(name)), module_(std::forward<M>(module)) {}
  const std::string& name() const { return name_; }
  const AnyModuleOf<lazy_>& module() const { return module_; }

 private:
  std::string name_;
  AnyModuleOf<lazy_> module_;
};
using NamedAnyModule = NamedAnyModuleOf<>;

// What a Sequential and a ModuleList share: modules by index. An entry is a shared pointer, or an
// AnyModule.
template <class Self, class Entry, int lazy_ = 0>
class IndexedModules : public Cloneable<Self> {
 public:
  using Iterator = typename std::vector<Entry>::iterator;
  void reset() override {}
  size_t size() const { return modules_.size(); }
  bool is_empty() const { return modules_.empty(); }
  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  std::shared_ptr<Module> ptr(size_t i) const {
    LAMELLA_CHECK_INDEX(i < size(), Self::kName, ": expected an index below ", size(), ", got ", i);
    if constexpr (requires { modules_[i].ptr(); }) {
      return modules_[i].ptr();
    } else {
      return modules_[i];
    }
  }
  template <class M>
  auto& at(size_t i) const {
    return detail::cast_module<M>(*ptr(i));
  }
  template <class M>
  auto ptr(size_t i) const {
    at<M>(i);
    return std::static_pointer_cast<typename detail::ContainedIn<M>::type>(ptr(i));
  }
  template <class Container>
  void extend(const Container& modules) {
    for (const auto& module : modules) static_cast<Self*>(this)->push_back(module);
  }

 protected:
  std::vector<Entry> modules_;
};

// A chain of modules: each is called with the result of the one before.
LAMELLA_LAZY class SequentialImplOf
    : public IndexedModules<SequentialImplOf<lazy_>, AnyModuleOf<lazy_>> {
  using Base = IndexedModules<SequentialImplOf<lazy_>, AnyModuleOf<lazy_>>;
  using Base::modules_;

 public:
  static constexpr const char* kName = "Sequential";
  SequentialImplOf() = default;
  template <class... M>
    requires(sizeof...(M) > 0 && (!std::is_same_v<std::remove_cvref_t<M>, SequentialImplOf> && ...))
  explicit SequentialImplOf(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  explicit SequentialImplOf(std::initializer_list<NamedAnyModuleOf<lazy_>> modules) {
    for (const NamedAnyModuleOf<lazy_>& named : modules) push_back(named.name(), named.module());
  }
  LAMELLA_SHOWN_AS("Sequential")
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto twin = std::make_shared<SequentialImplOf>();
    for (size_t i = 0; i < modules_.size(); ++i) {
      twin->push_back(this->named_children()[i].key(), modules_[i].clone(device));
    }
    return twin;
  }

  template <class M>
  void push_back(M&& module) {
    push_back(std::to_string(modules_.size()), AnyModuleOf<lazy_>(std::forward<M>(module)));
  }
  template <class M>
  void push_back(std::string name, M&& module) {
    push_back(std::move(name), AnyModuleOf<lazy_>(std::forward<M>(module)));
  }
  void push_back(AnyModuleOf<lazy_> module) {
    push_back(std::to_string(modules_.size()), std::move(module));
  }
  void push_back(std::string name, AnyModuleOf<lazy_> module) {
    this->register_module(std::move(name), module.ptr());
    modules_.push_back(std::move(module));
  }
  template <class R = Tensor, class... A>
  R forward(A&&... inputs) {
    LAMELLA_CHECK(!modules_.empty(), "Sequential: expected at least one module");
    AnyValue result = modules_[0].any_forward(std::forward<A>(inputs)...);
    for (size_t i = 1; i < modules_.size(); ++i)
      result = modules_[i].any_forward(std::move(result));
    const R* typed = result.template try_get<R>();
    LAMELLA_CHECK_TYPE(typed != nullptr, "Sequential: forward: expected a result of type ",
                       detail::class_name(typeid(R).name()), ", got ",
                       detail::class_name(result.type_info().name()));
    return *typed;
  }
};
using SequentialImpl = SequentialImplOf<>;
LAMELLA_LAZY class SequentialOf : public ModuleHolder<SequentialImplOf<lazy_>> {
  using Holder = ModuleHolder<SequentialImplOf<lazy_>>;

 public:
  using Holder::Holder;
  SequentialOf() = default;
  SequentialOf(std::initializer_list<NamedAnyModuleOf<lazy_>> modules)
      : Holder(std::make_shared<SequentialImplOf<lazy_>>(modules)) {}
};
using Sequential = SequentialOf<>;

// A list of modules without a forward(): the caller calls them.
LAMELLA_LAZY class ModuleListImplOf
    : public IndexedModules<ModuleListImplOf<lazy_>, std::shared_ptr<ModuleOf<lazy_>>> {
  using Base = IndexedModules<ModuleListImplOf<lazy_>, std::shared_ptr<ModuleOf<lazy_>>>;
  using Base::modules_;

 public:
  static constexpr const char* kName = "ModuleList";
  ModuleListImplOf() = default;
  template <class... M>
    requires(sizeof...(M) > 0 && (!std::is_same_v<std::remove_cvref_t<M>, ModuleListImplOf> && ...))
  explicit ModuleListImplOf(const M&... modules) {
    (push_back(modules), ...);
  }
  LAMELLA_SHOWN_AS("ModuleList")
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto twin = std::make_shared<ModuleListImplOf>();
    for (auto& module : modules_) twin->push_back(module->clone(device));
    return twin;
  }
  template <class M>
  void push_back(const ModuleHolder<M>& module) {
    push_back(std::static_pointer_cast<Module>(module.ptr()));
  }
  template <class M>
  void push_back(std::shared_ptr<M> module) {
    this->register_module(std::to_string(modules_.size()), module);
    modules_.push_back(std::move(module));
  }
  template <class M>
    requires std::is_base_of_v<Module, M>
  void push_back(const M& module) {
    push_back(std::make_shared<M>(module));
  }
  template <class M>
  void insert(size_t i, const ModuleHolder<M>& module) {
    insert(i, module.ptr());
  }
  template <class M>
  void insert(size_t i, std::shared_ptr<M> module) {
    LAMELLA_CHECK_INDEX(i <= this->size(), "ModuleList: expected an index up to ", this->size(),
                        ", got ", i);
    auto moved = std::move(modules_);
    moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(i), std::move(module));
    modules_.clear();
    this->forget_all();
    for (auto& one : moved) push_back(std::move(one));
  }
};
LAMELLA_LAZY_MODULE(ModuleList)

}  // namespace lamella::nn
