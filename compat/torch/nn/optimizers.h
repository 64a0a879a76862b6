// The other optimizers of lamella::optim: Adagrad, RMSprop and L-BFGS.
#pragma once
#include <algorithm>
#include <deque>

#include "lamella/nn/optim.h"

namespace lamella::optim {

// ---- Adagrad -----------------------------------------------------------------------------------

// J. Duchi, E. Hazan, Y. Singer, Adaptive Subgradient Methods, 2011.
LAMELLA_LAZY struct AdagradOptionsOf : OptionsOf<AdagradOptionsOf<lazy_>> {
  AdagradOptionsOf(double lr = 1e-2) : lr_(lr) {}  // NOLINT: implicit
  LAMELLA_OPTION(double, lr);
  LAMELLA_OPTION(double, lr_decay) = 0;
  LAMELLA_OPTION(double, weight_decay) = 0;
  LAMELLA_OPTION(double, initial_accumulator_value) = 0;
  LAMELLA_OPTION(double, eps) = 1e-10;

  LAMELLA_LISTED(lr(), lr_decay(), weight_decay(), initial_accumulator_value(), eps())
};
using AdagradOptions = AdagradOptionsOf<>;
LAMELLA_LAZY struct AdagradParamStateOf : ParamStateOf<AdagradParamStateOf<lazy_>> {
  LAMELLA_STATE(int64_t, step, steps)
  LAMELLA_STATE(Tensor, sum, first)
  LAMELLA_LISTED(step(), sum())
};
using AdagradParamState = AdagradParamStateOf<>;

LAMELLA_LAZY class AdagradOf : public OptimizerOf<lazy_> {
 public:
  explicit AdagradOf(std::vector<OptimizerParamGroupOf<lazy_>> groups,
                     const AdagradOptionsOf<lazy_>& defaults = {})
      : OptimizerOf<lazy_>(std::move(groups), defaults.clone()) {
    detail::check_not_negative("Adagrad", "lr", defaults.lr());
    detail::check_not_negative("Adagrad", "lr_decay", defaults.lr_decay());
    detail::check_not_negative("Adagrad", "weight_decay", defaults.weight_decay());
    detail::check_not_negative("Adagrad", "initial_accumulator_value",
                               defaults.initial_accumulator_value());
    detail::check_not_negative("Adagrad", "eps", defaults.eps());
    for (auto& group : this->param_groups()) {
      for (const Tensor& param : group.params()) {
        this->state_of(param).first =
            lamella::full_like(param.detach(), Scalar(defaults.initial_accumulator_value()));
      }
    }
  }
  explicit AdagradOf(std::vector<Tensor> params, const AdagradOptionsOf<lazy_>& defaults = {})
      : AdagradOf(std::vector<OptimizerParamGroupOf<lazy_>>{std::move(params)}, defaults) {}

 protected:
  LAMELLA_MAKES_STATE(AdagradParamStateOf<lazy_>)
  void update(Tensor& param, const Tensor& grad, const OptimizerOptionsOf<lazy_>& given,
              typename OptimizerOf<lazy_>::State& state) override {
    const auto& options = static_cast<const AdagradOptionsOf<lazy_>&>(given);
    Tensor g = grad;
    if (options.weight_decay() != 0) g = g.add(param, options.weight_decay());
    const double lr = options.lr() / (1 + static_cast<double>(state.steps++) * options.lr_decay());
    state.first.addcmul_(g, g, 1);
    param.addcdiv_(g, state.first.sqrt().add_(options.eps()), -lr);
  }
};
using Adagrad = AdagradOf<>;

// ---- RMSprop -----------------------------------------------------------------------------------

// T. Tieleman, G. Hinton, Lecture 6.5 - RMSProp, 2012; `centered` as in A. Graves, Generating
// Sequences With Recurrent Neural Networks, 2013.
LAMELLA_LAZY struct RMSpropOptionsOf : OptionsOf<RMSpropOptionsOf<lazy_>> {
  RMSpropOptionsOf(double lr = 1e-2) : lr_(lr) {}  // NOLINT: implicit
  LAMELLA_OPTION(double, lr);
  LAMELLA_OPTION(double, alpha) = 0.99;
  LAMELLA_OPTION(double, eps) = 1e-8;
  LAMELLA_OPTION(double, weight_decay) = 0;
  LAMELLA_OPTION(double, momentum) = 0;
  LAMELLA_OPTION(bool, centered) = false;

  LAMELLA_LISTED(lr(), alpha(), eps(), weight_decay(), momentum(), centered())
};
using RMSpropOptions = RMSpropOptionsOf<>;
LAMELLA_LAZY struct RMSpropParamStateOf : ParamStateOf<RMSpropParamStateOf<lazy_>> {
  LAMELLA_STATE(int64_t, step, steps)
  LAMELLA_STATE(Tensor, square_avg, second)
  LAMELLA_STATE(Tensor, momentum_buffer, first)
  LAMELLA_STATE(Tensor, grad_avg, largest)
  LAMELLA_LISTED(step(), square_avg(), momentum_buffer(), grad_avg())
};
using RMSpropParamState = RMSpropParamStateOf<>;

LAMELLA_LAZY class RMSpropOf : public OptimizerOf<lazy_> {
 public:
  explicit RMSpropOf(std::vector<OptimizerParamGroupOf<lazy_>> groups,
                     const RMSpropOptionsOf<lazy_>& defaults = {})
      : OptimizerOf<lazy_>(std::move(groups), defaults.clone()) {
    detail::check_not_negative("RMSprop", "lr", defaults.lr());
    detail::check_not_negative("RMSprop", "eps", defaults.eps());
    detail::check_not_negative("RMSprop", "momentum", defaults.momentum());
    detail::check_not_negative("RMSprop", "weight_decay", defaults.weight_decay());
    detail::check_not_negative("RMSprop", "alpha", defaults.alpha());
  }
  explicit RMSpropOf(std::vector<Tensor> params, const RMSpropOptionsOf<lazy_>& defaults = {})
      : RMSpropOf(std::vector<OptimizerParamGroupOf<lazy_>>{std::move(params)}, defaults) {}

 protected:
  LAMELLA_MAKES_STATE(RMSpropParamStateOf<lazy_>)
  // State: `second` is the mean square, `largest` the mean, `first` the momentum.
  void update(Tensor& param, const Tensor& grad, const OptimizerOptionsOf<lazy_>& given,
              typename OptimizerOf<lazy_>::State& state) override {
    const auto& options = static_cast<const RMSpropOptionsOf<lazy_>&>(given);
    if (!state.second.defined()) {
      state.second = lamella::zeros_like(param);
      if (options.momentum() > 0) state.first = lamella::zeros_like(param);
      if (options.centered()) state.largest = lamella::zeros_like(param);
    }
    ++state.steps;
    Tensor g = grad;
    if (options.weight_decay() != 0) g = g.add(param, options.weight_decay());
    state.second.mul_(options.alpha()).addcmul_(g, g, 1 - options.alpha());
    Tensor width = state.second;
    if (options.centered()) {
      state.largest.mul_(options.alpha()).add_(g, 1 - options.alpha());
      width = width.addcmul(state.largest, state.largest, -1);
    }
    width = width.sqrt().add_(options.eps());
    if (options.momentum() > 0) {
      state.first.mul_(options.momentum()).addcdiv_(g, width);
      param.add_(state.first, -options.lr());
    } else {
      param.addcdiv_(g, width, -options.lr());
    }
  }
};
using RMSprop = RMSpropOf<>;

// ---- L-BFGS ------------------------------------------------------------------------------------

LAMELLA_LAZY struct LBFGSOptionsOf : OptionsOf<LBFGSOptionsOf<lazy_>> {
  LBFGSOptionsOf(double lr = 1) : lr_(lr) {}  // NOLINT: implicit
  LAMELLA_OPTION(double, lr);
  LAMELLA_OPTION(int64_t, max_iter) = 20;
  LAMELLA_OPTION(std::optional<int64_t>, max_eval);  // default: max_iter * 5 / 4
  LAMELLA_OPTION(double, tolerance_grad) = 1e-7;
  LAMELLA_OPTION(double, tolerance_change) = 1e-9;
  LAMELLA_OPTION(int64_t, history_size) = 100;
  LAMELLA_OPTION(std::optional<std::string>, line_search_fn);  // the only value is strong_wolfe

  LAMELLA_LISTED(lr(), max_iter(), max_eval(), tolerance_grad(), tolerance_change(), history_size(),
                 line_search_fn())
};
using LBFGSOptions = LBFGSOptionsOf<>;
// The state of all parameters together, kept for the first one: the last direction `d` with its
// distance `t` and the gradient before it, and for each step in the history the change of the
// gradient, of the parameters, and the inverse of their product.
LAMELLA_LAZY struct LBFGSParamStateOf : ParamStateOf<LBFGSParamStateOf<lazy_>> {
  LAMELLA_STATE(int64_t, n_iter, steps)
  LAMELLA_STATE(Tensor, d, first)
  LAMELLA_STATE(Tensor, prev_flat_grad, second)
  LAMELLA_STATE(Tensor, H_diag, largest)
  LAMELLA_OPTION(int64_t, func_evals) = 0;
  LAMELLA_OPTION(double, t) = 0;
  LAMELLA_OPTION(double, prev_loss) = 0;
  LAMELLA_OPTION(std::deque<Tensor>, old_dirs);
  LAMELLA_OPTION(std::deque<Tensor>, old_stps);
  LAMELLA_OPTION(std::deque<Tensor>, ro);
  LAMELLA_OPTION(std::optional<std::vector<Tensor>>, al);
  LAMELLA_LISTED(func_evals(), n_iter(), t(), prev_loss(), d(), H_diag(), prev_flat_grad(),
                 old_dirs(), old_stps(), ro(), al())
  friend bool operator==(const LBFGSParamStateOf& a, const LBFGSParamStateOf& b) {
    auto same = [](const auto& x, const auto& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                        [](const Tensor& u, const Tensor& v) { return u.equal(v); });
    };
    const OptimizerParamStateOf<lazy_>&base_a = a, &base_b = b;
    return base_a == base_b &&
           std::tie(a.func_evals_, a.t_, a.prev_loss_) ==
               std::tie(b.func_evals_, b.t_, b.prev_loss_) &&
           same(a.old_dirs_, b.old_dirs_) && same(a.old_stps_, b.old_stps_) && same(a.ro_, b.ro_) &&
           a.al_.has_value() == b.al_.has_value() && (!a.al_ || same(*a.al_, *b.al_));
  }
};
using LBFGSParamState = LBFGSParamStateOf<>;

// J. Nocedal, S. Wright, Numerical Optimization, 2006: algorithms 7.4 and 7.5, and 3.5 and 3.6 for
// "strong_wolfe". One step makes up to max_iter iterations with up to max_eval calls of the
// closure. It ends when the gradient is within tolerance_grad, or when parameters and loss change
// by less than tolerance_change.
LAMELLA_LAZY class LBFGSOf : public OptimizerOf<lazy_> {
  using typename OptimizerOf<lazy_>::LossClosure;
  using Options = LBFGSOptionsOf<lazy_>;
  using State = LBFGSParamStateOf<lazy_>;

 public:
  explicit LBFGSOf(std::vector<OptimizerParamGroupOf<lazy_>> groups, const Options& defaults = {})
      : OptimizerOf<lazy_>(std::move(groups), defaults.clone()) {
    LAMELLA_CHECK_VALUE(this->param_groups_.size() == 1,
                        "LBFGS: expected one parameter group, got ", this->param_groups_.size());
    auto& options = static_cast<Options&>(this->param_groups_[0].options());
    if (!options.max_eval()) options.max_eval(options.max_iter() * 5 / 4);
    LAMELLA_CHECK_VALUE(!options.line_search_fn() || *options.line_search_fn() == "strong_wolfe",
                        "LBFGS: expected 'line_search_fn' to be strong_wolfe or none, got '",
                        options.line_search_fn().value_or(""), "'");
  }
  explicit LBFGSOf(std::vector<Tensor> params, const Options& defaults = {})
      : LBFGSOf(std::vector<OptimizerParamGroupOf<lazy_>>{std::move(params)}, defaults) {}

  // The closure computes the loss and the gradients. Returns the first loss that it computed.
  Tensor step(LossClosure closure) override {
    LAMELLA_CHECK_TYPE(closure != nullptr, "LBFGS: expected a closure");
    NoGradGuard guard;
    const auto& options = static_cast<const Options&>(this->param_groups_[0].options());
    auto& state = static_cast<State&>(this->state_of(this->param_groups_[0].params()[0]));
    auto evaluate = [&] {
      AutoGradMode on(true);
      ++state.func_evals();
      return closure();
    };
    const Tensor first = evaluate();
    double loss = number(first);
    int64_t calls = 1;
    Tensor grad = gradient();
    auto largest = [](const Tensor& of) { return number(of.abs().max()); };
    if (largest(grad) <= options.tolerance_grad()) return first;
    for (int64_t iteration = 1; iteration <= options.max_iter(); ++iteration) {
      ++state.steps;
      state.d(next_direction(state, grad, options.history_size()));
      const Tensor& direction = state.d();
      state.prev_flat_grad(grad.clone());
      state.prev_loss(loss);
      double& distance = state.t();
      distance = options.lr();
      if (state.steps == 1) distance *= std::min(1.0, 1 / number(grad.abs().sum()));
      const double slope = number(grad.dot(direction));
      if (slope > -options.tolerance_change()) break;
      if (options.line_search_fn()) {
        std::vector<Tensor> kept;
        for (const Tensor& param : this->param_groups_[0].params()) kept.push_back(param.clone());
        auto at = [&](double there) {
          go(direction, there);
          const double found = number(evaluate());
          for (size_t i = 0; i < kept.size(); ++i) {
            this->param_groups_[0].params()[i].copy_(kept[i]);
          }
          Tensor slopes = gradient();
          return Point{there, found, slopes, number(slopes.dot(direction))};
        };
        Search search{loss, slope, options.tolerance_change(), largest(direction),
                      *options.max_eval() - calls};
        Point found = search.run(Point{0, loss, grad, slope}, distance, at);
        loss = found.loss;
        grad = found.gradient;
        distance = found.distance;
        calls += search.evaluations;
        go(direction, distance);
      } else {
        go(direction, distance);
        if (iteration != options.max_iter()) {  // the next iteration starts from this evaluation
          loss = number(evaluate());
          grad = gradient();
          ++calls;
        }
      }
      if (calls >= *options.max_eval() || largest(grad) <= options.tolerance_grad() ||
          largest(direction * distance) <= options.tolerance_change() ||
          std::abs(loss - state.prev_loss()) < options.tolerance_change()) {
        break;
      }
    }
    return first;
  }

 protected:
  LAMELLA_MAKES_STATE(State)

 private:
  // A point along the search direction: its loss, and its slope in that direction.
  struct Point {
    double distance, loss;
    Tensor gradient;
    double slope;
  };

  static double number(const Tensor& tensor) { return tensor.item().template to<double>(); }
  // The gradients of all parameters as one vector.
  Tensor gradient() {
    std::vector<Tensor> parts;
    for (const Tensor& param : this->param_groups_[0].params()) {
      Tensor grad = param.grad();
      parts.push_back((grad.defined() ? grad : lamella::zeros_like(param)).reshape({-1}));
    }
    return lamella::cat(parts);
  }
  void go(const Tensor& direction, double distance) {
    int64_t at = 0;
    for (Tensor& param : this->param_groups_[0].params()) {
      param.add_(direction.slice(0, at, at + param.numel()).view_as(param), distance);
      at += param.numel();
    }
  }

  // Adds the last step to the history, then returns the estimated inverse Hessian times -grad.
  Tensor next_direction(State& state, const Tensor& grad, int64_t history_size) {
    auto &changes = state.old_dirs(), &moves = state.old_stps(), &inverses = state.ro();
    if (state.steps == 1) {
      for (auto* list : {&changes, &moves, &inverses}) list->clear();
      state.H_diag(lamella::ones({}, grad.options()));
      return -grad;
    }
    Tensor change = grad - state.prev_flat_grad(), moved = state.d() * state.t();
    Tensor curvature = change.dot(moved);
    if (number(curvature) > 1e-10) {
      if (static_cast<int64_t>(changes.size()) == history_size) {
        for (auto* list : {&changes, &moves, &inverses}) list->pop_front();
      }
      changes.push_back(change);
      moves.push_back(moved);
      inverses.push_back(curvature.reciprocal());
      state.H_diag(curvature / change.dot(change));
    }
    std::vector<Tensor> shares(changes.size());
    Tensor q = -grad;
    for (size_t i = changes.size(); i-- > 0;) {
      shares[i] = moves[i].dot(q) * inverses[i];
      q = q - changes[i] * shares[i];
    }
    q = q * state.H_diag();
    for (size_t i = 0; i < changes.size(); ++i) {
      q = q + moves[i] * (shares[i] - changes[i].dot(q) * inverses[i]);
    }
    state.al(std::move(shares));
    return q;
  }

  // Searches for a point that satisfies the strong Wolfe conditions, or else the best one found.
  struct Search {
    double loss, slope, tolerance, size;  // size: the largest entry of the direction
    int64_t most;                         // limit of further evaluations
    int64_t evaluations = 0;

    bool is_high(const Point& point) const {
      return point.loss > loss + 1e-4 * point.distance * slope;
    }
    bool is_flat(const Point& point) const { return std::abs(point.slope) <= -0.9 * slope; }
    // The minimum of the cubic through two points with their slopes: equation 3.59.
    static double between(const Point& a, const Point& b, double low, double high) {
      const Point& left = a.distance <= b.distance ? a : b;
      const Point& right = a.distance <= b.distance ? b : a;
      const double x = left.distance, y = right.distance, g = left.slope, k = right.slope;
      const double middle = (low + high) / 2;
      if (x == y) return middle;
      const double d1 = g + k - 3 * (left.loss - right.loss) / (x - y);
      const double square = d1 * d1 - g * k;
      if (!(square >= 0)) return middle;
      const double d2 = std::sqrt(square), under = k - g + 2 * d2;
      if (under == 0) return middle;
      return std::min(std::max(y - (y - x) * ((k + d2 - d1) / under), low), high);
    }
    template <class At>
    Point run(const Point& start, double distance, const At& at) {
      Point before = start, point = at(distance);
      evaluations = 1;
      int64_t rounds = 0;
      bool is_bracketed = false;
      Point low = start, high = point;
      while (rounds < most) {
        if (is_high(point) || (rounds > 1 && point.loss >= before.loss)) {
          is_bracketed = true;
        } else if (is_flat(point)) {
          return point;
        } else if (point.slope >= 0) {
          is_bracketed = true;
        }
        if (is_bracketed) {
          low = before;
          high = point;
          break;
        }
        const double least = point.distance + 0.01 * (point.distance - before.distance);
        Point next = at(between(before, point, least, point.distance * 10));
        before = point;
        point = next;
        ++evaluations;
        ++rounds;
      }
      if (!is_bracketed) high = point;
      if (low.loss > high.loss) std::swap(low, high);
      bool is_stuck = false;
      while (rounds < most) {
        const double left = std::min(low.distance, high.distance);
        const double right = std::max(low.distance, high.distance);
        if ((right - left) * size < tolerance) break;
        double place = between(low, high, left, right);
        const double margin = 0.1 * (right - left);
        if (std::min(right - place, place - left) < margin) {
          // Moves away from an end that was hit, or that was near twice in a row.
          if (is_stuck || place >= right || place <= left) {
            place =
                std::abs(place - right) < std::abs(place - left) ? right - margin : left + margin;
            is_stuck = false;
          } else {
            is_stuck = true;
          }
        } else {
          is_stuck = false;
        }
        Point found = at(place);
        ++evaluations;
        ++rounds;
        if (is_high(found) || found.loss >= low.loss) {
          high = found;
          if (low.loss > high.loss) std::swap(low, high);
          continue;
        }
        if (is_flat(found)) return found;
        if (found.slope * (high.distance - low.distance) >= 0) high = low;
        low = found;
      }
      return low;
    }
  };
};
using LBFGS = LBFGSOf<>;

}  // namespace lamella::optim
