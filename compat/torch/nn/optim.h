// lamella::optim: the base of all optimizers, SGD, Adam and AdamW. optimizers.h has the others.
#pragma once
#include <cmath>
#include <functional>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "lamella/layers/autograd/grad_mode.h"
#include "lamella/nn/options.h"

namespace lamella::optim {

// The base of options; each optimizer has its own class.
LAMELLA_LAZY class OptimizerOptionsOf {
 public:
  virtual ~OptimizerOptionsOf() = default;
  virtual std::unique_ptr<OptimizerOptionsOf> clone() const = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
};
using OptimizerOptions = OptimizerOptionsOf<>;

// Parameters with options of their own, or with the optimizer's defaults.
LAMELLA_LAZY class OptimizerParamGroupOf {
 public:
  OptimizerParamGroupOf(std::vector<Tensor> params) : params_(std::move(params)) {}  // NOLINT
  OptimizerParamGroupOf(std::vector<Tensor> params,
                        std::unique_ptr<OptimizerOptionsOf<lazy_>> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroupOf(const OptimizerParamGroupOf& other)
      : params_(other.params_), options_(other.options_ ? other.options_->clone() : nullptr) {}
  OptimizerParamGroupOf& operator=(OptimizerParamGroupOf other) {
    params_.swap(other.params_);
    options_.swap(other.options_);
    return *this;
  }
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptionsOf<lazy_>& options() const {
    LAMELLA_CHECK(options_ != nullptr, "OptimizerParamGroup: expected options");
    return *options_;
  }
  void set_options(std::unique_ptr<OptimizerOptionsOf<lazy_>> options) {
    options_ = std::move(options);
  }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptionsOf<lazy_>> options_;
};
using OptimizerParamGroup = OptimizerParamGroupOf<>;

// The state of one parameter. Optimizers name its parts by the accessors of their own classes;
// tensors that they do not use are undefined.
LAMELLA_LAZY class OptimizerParamStateOf {
 public:
  virtual ~OptimizerParamStateOf() = default;
  virtual std::unique_ptr<OptimizerParamStateOf> clone() const {
    return std::make_unique<OptimizerParamStateOf>(*this);
  }
  friend bool operator==(const OptimizerParamStateOf& a, const OptimizerParamStateOf& b) {
    auto same = [](const Tensor& x, const Tensor& y) {
      return x.defined() && y.defined() ? x.equal(y) : x.defined() == y.defined();
    };
    return a.steps == b.steps && same(a.first, b.first) && same(a.second, b.second) &&
           same(a.largest, b.largest);
  }

  int64_t steps = 0;
  Tensor first, second, largest;
};
using OptimizerParamState = OptimizerParamStateOf<>;

// The base of the class T of states.
template <class T, int lazy_ = 0>
class ParamStateOf : public OptimizerParamStateOf<lazy_> {
 public:
  std::unique_ptr<OptimizerParamStateOf<lazy_>> clone() const override {
    return std::make_unique<T>(static_cast<const T&>(*this));
  }
};
template <class T>
using OptimizerCloneableParamState = ParamStateOf<T>;

// An accessor of a state: `name` for the part `member`.
#define LAMELLA_STATE(T, name, member)           \
  const T& name() const { return this->member; } \
  T& name() { return this->member; }             \
  void name(const T& value) { this->member = value; }
// Lists the getters of a class of options or of a state, in the order of files.
#define LAMELLA_LISTED(...)                                 \
 public:                                                    \
  static constexpr std::string_view kListed = #__VA_ARGS__; \
  auto listed() { return std::tie(__VA_ARGS__); }           \
  auto listed() const { return std::tie(__VA_ARGS__); }
#define LAMELLA_MAKES_STATE(T)                                                \
  std::unique_ptr<OptimizerParamStateOf<lazy_>> make_state() const override { \
    return std::make_unique<T>();                                             \
  }

LAMELLA_LAZY class OptimizerOf {
 public:
  using Optimizer = OptimizerOf;  // the name by which derived classes call its constructor
  using LossClosure = std::function<Tensor()>;

  OptimizerOf(std::vector<OptimizerParamGroupOf<lazy_>> groups,
              std::unique_ptr<OptimizerOptionsOf<lazy_>> defaults)
      : defaults_(std::move(defaults)) {
    for (OptimizerParamGroupOf<lazy_>& group : groups) add_param_group(group);
  }
  OptimizerOf(const OptimizerOf&) = delete;
  OptimizerOf& operator=(const OptimizerOf&) = delete;
  virtual ~OptimizerOf() = default;

  // Updates each parameter by its gradient with update(). Returns the loss of the closure, if one
  // is given.
  virtual Tensor step(LossClosure closure = nullptr) {
    Tensor loss;
    if (closure) {
      AutoGradMode on(true);
      loss = closure();
    }
    NoGradGuard guard;
    for (OptimizerParamGroupOf<lazy_>& group : param_groups_) {
      for (Tensor& param : group.params()) {
        Tensor grad = param.grad();
        if (grad.defined()) update(param, grad, group.options(), state_of(param));
      }
    }
    return loss;
  }
  void zero_grad(bool set_to_none = true) {
    for (OptimizerParamGroupOf<lazy_>& group : param_groups_) {
      for (Tensor& param : group.params()) {
        if (!param.grad().defined()) continue;
        if (set_to_none) {
          param.mutable_grad() = Tensor();
        } else {
          param.grad().detach().zero_();
        }
      }
    }
  }
  void add_param_group(const OptimizerParamGroupOf<lazy_>& given) {
    OptimizerParamGroupOf<lazy_> group = given;
    if (!group.has_options()) group.set_options(defaults_->clone());
    for (const Tensor& param : group.params()) {
      LAMELLA_CHECK(param.is_leaf(), "Optimizer: expected parameters that no call made");
      for (const OptimizerParamGroupOf<lazy_>& other : param_groups_) {
        for (const Tensor& known : other.params()) {
          LAMELLA_CHECK(!known.is_same(param), "Optimizer: expected each parameter in one group");
        }
      }
    }
    param_groups_.push_back(std::move(group));
  }
  std::vector<OptimizerParamGroupOf<lazy_>>& param_groups() { return param_groups_; }
  const std::vector<OptimizerParamGroupOf<lazy_>>& param_groups() const { return param_groups_; }
  std::vector<Tensor>& parameters() { return param_groups_.at(0).params(); }
  // Adds to the first group.
  void add_parameters(const std::vector<Tensor>& added) {
    parameters().insert(parameters().end(), added.begin(), added.end());
  }
  size_t size() const {
    size_t count = 0;
    for (const OptimizerParamGroupOf<lazy_>& group : param_groups_) count += group.params().size();
    return count;
  }
  OptimizerOptionsOf<lazy_>& defaults() { return *defaults_; }
  const OptimizerOptionsOf<lazy_>& defaults() const { return *defaults_; }

  // The states by parameter, each from the first step on that needs it.
  using States = std::unordered_map<void*, std::unique_ptr<OptimizerParamStateOf<lazy_>>>;
  States& state() { return state_; }
  const States& state() const { return state_; }
  using State = OptimizerParamStateOf<lazy_>;
  // Null before the first step.
  State* find_state(const Tensor& param) const {
    auto found = state_.find(param.impl());
    return found == state_.end() ? nullptr : found->second.get();
  }
  State& state_of(const Tensor& param) {
    std::unique_ptr<State>& found = state_[param.impl()];
    if (!found) found = make_state();
    return *found;
  }

 protected:
  // An optimizer overrides this or step().
  virtual void update(Tensor&, const Tensor&, const OptimizerOptionsOf<lazy_>&, State&) {
    LAMELLA_CHECK_NOT_IMPLEMENTED(false, "Optimizer: expected update() or step() to be overridden");
  }

  virtual std::unique_ptr<State> make_state() const { return std::make_unique<State>(); }

  std::vector<OptimizerParamGroupOf<lazy_>> param_groups_;
  std::unique_ptr<OptimizerOptionsOf<lazy_>> defaults_;
  States state_;
};
using Optimizer = OptimizerOf<>;

// The base of the options class T, with the members that all options share.
template <class T, int lazy_ = 0>
class OptionsOf : public OptimizerOptionsOf<lazy_> {
 public:
  std::unique_ptr<OptimizerOptionsOf<lazy_>> clone() const override {
    return std::make_unique<T>(static_cast<const T&>(*this));
  }
  double get_lr() const override {
    if constexpr (requires(const T& own) { own.lr(); }) return static_cast<const T&>(*this).lr();
    LAMELLA_CHECK_NOT_IMPLEMENTED(false, "get_lr: expected options with 'lr', or an override");
  }
  void set_lr(double lr) override {
    if constexpr (requires(T& own) { own.lr(lr); }) {
      static_cast<T&>(*this).lr(lr);
    } else {
      LAMELLA_CHECK_NOT_IMPLEMENTED(false, "set_lr: expected options with 'lr', or an override");
    }
  }
  friend bool operator==(const T& a, const T& b)
    requires requires { a.listed(); }
  {
    return a.listed() == b.listed();
  }
};
template <class T>
using OptimizerCloneableOptions = OptionsOf<T>;

namespace detail {
LAMELLA_LAZY void check_not_negative(const char* op, const char* name, double value) {
  LAMELLA_CHECK_VALUE(value >= 0, op, ": expected '", name, "' to be at least 0, got ", value);
}
}  // namespace detail

// ---- SGD ---------------------------------------------------------------------------------------

LAMELLA_LAZY struct SGDOptionsOf : OptionsOf<SGDOptionsOf<lazy_>> {
  SGDOptionsOf(double lr) : lr_(lr) {}  // NOLINT: implicit
  LAMELLA_OPTION(double, lr);
  LAMELLA_OPTION(double, momentum) = 0;
  LAMELLA_OPTION(double, dampening) = 0;
  LAMELLA_OPTION(double, weight_decay) = 0;
  LAMELLA_OPTION(bool, nesterov) = false;

  LAMELLA_LISTED(lr(), momentum(), dampening(), weight_decay(), nesterov())
};

using SGDOptions = SGDOptionsOf<>;
LAMELLA_LAZY struct SGDParamStateOf : ParamStateOf<SGDParamStateOf<lazy_>> {
  LAMELLA_STATE(Tensor, momentum_buffer, first)
  LAMELLA_LISTED(momentum_buffer())
};
using SGDParamState = SGDParamStateOf<>;

LAMELLA_LAZY class SGDOf : public OptimizerOf<lazy_> {
  using State = typename OptimizerOf<lazy_>::State;

 public:
  SGDOf(std::vector<OptimizerParamGroupOf<lazy_>> groups, const SGDOptionsOf<lazy_>& defaults)
      : OptimizerOf<lazy_>(std::move(groups), defaults.clone()) {
    detail::check_not_negative("SGD", "lr", defaults.lr());
    detail::check_not_negative("SGD", "momentum", defaults.momentum());
    detail::check_not_negative("SGD", "weight_decay", defaults.weight_decay());
    LAMELLA_CHECK_VALUE(
        !defaults.nesterov() || (defaults.momentum() > 0 && defaults.dampening() == 0),
        "SGD: expected 'momentum' above 0 and 'dampening' 0 for 'nesterov'");
  }
  SGDOf(std::vector<Tensor> params, const SGDOptionsOf<lazy_>& defaults)
      : SGDOf(std::vector<OptimizerParamGroupOf<lazy_>>{std::move(params)}, defaults) {}

 protected:
  LAMELLA_MAKES_STATE(SGDParamStateOf<lazy_>)
  void update(Tensor& param, const Tensor& grad, const OptimizerOptionsOf<lazy_>& given,
              State& state) override {
    const auto& options = static_cast<const SGDOptionsOf<lazy_>&>(given);
    Tensor g = grad;
    if (options.weight_decay() != 0) g = g.add(param, options.weight_decay());
    if (options.momentum() != 0) {
      if (state.first.defined()) {
        state.first.mul_(options.momentum()).add_(g, 1 - options.dampening());
      } else {
        state.first = g.detach().clone();
      }
      g = options.nesterov() ? g.add(state.first, options.momentum()) : state.first;
    }
    param.add_(g, -options.lr());
  }
};
using SGD = SGDOf<>;

// ---- Adam --------------------------------------------------------------------------------------

// D. Kingma, J. Ba, Adam: A Method for Stochastic Optimization, 2015. `decay` is the default weight
// decay.
template <class Derived>
struct AdamOptionsOf : OptionsOf<Derived> {
  AdamOptionsOf(double lr, double decay) : lr_(lr), weight_decay_(decay) {}
  using Betas = std::tuple<double, double>;
#define LAMELLA_DERIVED_OPTION(T, name)     \
 public:                                    \
  template <int = 0>                        \
  Derived& name(const T& new_##name) {      \
    name##_ = new_##name;                   \
    return static_cast<Derived&>(*this);    \
  }                                         \
  const T& name() const { return name##_; } \
  T& name() { return name##_; }             \
                                            \
 private:                                   \
  T name##_
  LAMELLA_DERIVED_OPTION(double, lr);
  LAMELLA_DERIVED_OPTION(Betas, betas) = Betas(0.9, 0.999);
  LAMELLA_DERIVED_OPTION(double, eps) = 1e-8;
  LAMELLA_DERIVED_OPTION(double, weight_decay);
  LAMELLA_DERIVED_OPTION(bool, amsgrad) = false;

  LAMELLA_LISTED(lr(), betas(), eps(), weight_decay(), amsgrad())
#undef LAMELLA_DERIVED_OPTION
};
LAMELLA_LAZY struct PlainAdamOptions : AdamOptionsOf<PlainAdamOptions<lazy_>> {
  PlainAdamOptions(double lr = 1e-3)  // NOLINT: implicit
      : AdamOptionsOf<PlainAdamOptions<lazy_>>(lr, 0) {}
};
using AdamOptions = PlainAdamOptions<>;
// I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, 2019.
LAMELLA_LAZY struct DecoupledAdamOptions : AdamOptionsOf<DecoupledAdamOptions<lazy_>> {
  DecoupledAdamOptions(double lr = 1e-3)  // NOLINT: implicit
      : AdamOptionsOf<DecoupledAdamOptions<lazy_>>(lr, 1e-2) {}
};
using AdamWOptions = DecoupledAdamOptions<>;
LAMELLA_LAZY struct AdamParamStateOf : ParamStateOf<AdamParamStateOf<lazy_>> {
  LAMELLA_STATE(int64_t, step, steps)
  LAMELLA_STATE(Tensor, exp_avg, first)
  LAMELLA_STATE(Tensor, exp_avg_sq, second)
  LAMELLA_STATE(Tensor, max_exp_avg_sq, largest)
  LAMELLA_LISTED(step(), exp_avg(), exp_avg_sq(), max_exp_avg_sq())
};
using AdamParamState = AdamParamStateOf<>;
using AdamWParamState = AdamParamState;

template <class Options, int lazy_ = 0>
class AdamBase : public OptimizerOf<lazy_> {
 public:
  explicit AdamBase(std::vector<OptimizerParamGroupOf<lazy_>> groups, const Options& defaults = {})
      : OptimizerOf<lazy_>(std::move(groups), defaults.clone()) {
    detail::check_not_negative("Adam", "lr", defaults.lr());
    detail::check_not_negative("Adam", "eps", defaults.eps());
    detail::check_not_negative("Adam", "weight_decay", defaults.weight_decay());
    auto [beta1, beta2] = defaults.betas();
    LAMELLA_CHECK_VALUE(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1,
                        "Adam: expected 'betas' to be at least 0 and below 1, got ", beta1, " and ",
                        beta2);
  }
  explicit AdamBase(std::vector<Tensor> params, const Options& defaults = {})
      : AdamBase(std::vector<OptimizerParamGroupOf<lazy_>>{std::move(params)}, defaults) {}

 protected:
  LAMELLA_MAKES_STATE(AdamParamStateOf<lazy_>)
  void update(Tensor& param, const Tensor& grad, const OptimizerOptionsOf<lazy_>& given,
              typename OptimizerOf<lazy_>::State& state) override {
    const auto& options = static_cast<const Options&>(given);
    auto [beta1, beta2] = options.betas();
    if (!state.first.defined()) {
      state.first = lamella::zeros_like(param);
      state.second = lamella::zeros_like(param);
      if (options.amsgrad()) state.largest = lamella::zeros_like(param);
    }
    Tensor g = grad;
    if (options.weight_decay() != 0) {
      if constexpr (std::is_same_v<Options, AdamWOptions>) {
        param.mul_(1 - options.lr() * options.weight_decay());
      } else {
        g = g.add(param, options.weight_decay());
      }
    }
    auto step = static_cast<double>(++state.steps);
    state.first.mul_(beta1).add_(g, 1 - beta1);
    state.second.mul_(beta2).addcmul_(g, g, 1 - beta2);
    if (options.amsgrad()) state.largest = lamella::maximum(state.largest, state.second);
    const Tensor& square = options.amsgrad() ? state.largest : state.second;
    Tensor width = square.sqrt().div_(std::sqrt(1 - std::pow(beta2, step))).add_(options.eps());
    param.addcdiv_(state.first, width, -options.lr() / (1 - std::pow(beta1, step)));
  }
};
using Adam = AdamBase<AdamOptions>;
using AdamW = AdamBase<AdamWOptions>;

}  // namespace lamella::optim

namespace lamella::nn::utils {

// Concatenates all parameters into one vector; vector_to_parameters copies it back.
LAMELLA_LAZY Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : parameters) parts.push_back(parameter.view({-1}));
  return lamella::cat(parts);
}
LAMELLA_LAZY void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters) {
  int64_t total = 0, at = 0;
  for (const Tensor& parameter : parameters) total += parameter.numel();
  LAMELLA_CHECK_VALUE(vec.dim() == 1 && vec.size(0) == total,
                      "vector_to_parameters: expected 'vec' to have the shape ",
                      IntArrayRef({total}), ", got ", vec.sizes());
  for (const Tensor& parameter : parameters) {
    Tensor part = vec.slice(0, at, at + parameter.numel()).view_as(parameter);
    Tensor(parameter).set_data(part.data());
    at += parameter.numel();
  }
}

// Scales all gradients so that the norm over them together is at most max_norm; returns the norm.
LAMELLA_LAZY double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                                    double norm_type = 2, bool error_if_nonfinite = false) {
  NoGradGuard guard;
  std::vector<Tensor> norms;
  for (const Tensor& parameter : parameters) {
    Tensor grad = parameter.grad();
    if (grad.defined()) norms.push_back(grad.norm(norm_type));
  }
  if (norms.empty()) return 0;
  double total = lamella::stack(norms).norm(norm_type).item<double>();
  LAMELLA_CHECK(!error_if_nonfinite || std::isfinite(total),
                "clip_grad_norm_: expected a finite norm, got ", total);
  double scale = max_norm / (total + 1e-6);
  if (scale < 1) {
    for (const Tensor& parameter : parameters) {
      Tensor grad = parameter.grad();
      if (grad.defined()) grad.mul_(scale);
    }
  }
  return total;
}
LAMELLA_LAZY double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2,
                                    bool error_if_nonfinite = false) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type, error_if_nonfinite);
}
LAMELLA_LAZY void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGradGuard guard;
  for (const Tensor& parameter : parameters) {
    Tensor grad = parameter.grad();
    if (grad.defined()) grad.clamp_(-clip_value, clip_value);
  }
}
LAMELLA_LAZY void clip_grad_value_(const Tensor& parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{parameter}, clip_value);
}

}  // namespace lamella::nn::utils
