// lamella::optim: schedulers, which change an optimizer's learning rates during training.
#pragma once
#include <cstdio>
#include <limits>

#include "lamella/nn/optim.h"

namespace lamella::optim {

// The base: step() sets the rates that get_lrs() returns, one for each group. The optimizer must
// outlive the scheduler.
LAMELLA_LAZY class LRSchedulerOf {
 public:
  explicit LRSchedulerOf(OptimizerOf<lazy_>& optimizer) : optimizer_(&optimizer) {}
  virtual ~LRSchedulerOf() = default;
  void step() {
    std::vector<double> rates = get_lrs();
    auto& groups = optimizer_->param_groups();
    LAMELLA_CHECK_VALUE(rates.size() == groups.size(), "LRScheduler: expected ", groups.size(),
                        " learning rates, got ", rates.size());
    for (size_t i = 0; i < rates.size(); ++i) groups[i].options().set_lr(rates[i]);
    ++step_count_;
  }

 protected:
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const {
    std::vector<double> rates;
    for (auto& group : optimizer_->param_groups()) rates.push_back(group.options().get_lr());
    return rates;
  }

  unsigned step_count_ = 0;

 private:
  OptimizerOf<lazy_>* optimizer_;
};
using LRScheduler = LRSchedulerOf<>;

// Multiplies the rates by gamma every step_size steps.
LAMELLA_LAZY class StepLROf : public LRSchedulerOf<lazy_> {
 public:
  StepLROf(OptimizerOf<lazy_>& optimizer, unsigned step_size, double gamma = 0.1)
      : LRSchedulerOf<lazy_>(optimizer), step_size_(step_size), gamma_(gamma) {
    LAMELLA_CHECK_VALUE(step_size > 0, "StepLR: expected 'step_size' to be positive, got 0");
  }

 private:
  std::vector<double> get_lrs() override {
    std::vector<double> rates = this->get_current_lrs();
    if (this->step_count_ == 0 || this->step_count_ % step_size_ != 0) return rates;
    for (double& rate : rates) rate *= gamma_;
    return rates;
  }

  unsigned step_size_;
  double gamma_;
};
using StepLR = StepLROf<>;

// Multiplies the rates by a factor when a metric has not improved for more than `patience` steps,
// and then waits for `cooldown` steps.
LAMELLA_LAZY class ReduceLROnPlateauSchedulerOf {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };

  explicit ReduceLROnPlateauSchedulerOf(OptimizerOf<lazy_>& optimizer, SchedulerMode mode = min,
                                        float factor = 0.1f, int patience = 10,
                                        double threshold = 1e-4, ThresholdMode threshold_mode = rel,
                                        int cooldown = 0, const std::vector<float>& min_lr = {},
                                        double eps = 1e-8, bool verbose = false)
      : optimizer_(&optimizer),
        mode_(mode),
        threshold_mode_(threshold_mode),
        factor_(factor),
        patience_(patience),
        cooldown_(cooldown),
        threshold_(threshold),
        eps_(eps),
        verbose_(verbose),
        least_(min_lr),
        best_(mode == min ? std::numeric_limits<float>::infinity()
                          : -std::numeric_limits<float>::infinity()) {
    const size_t groups = optimizer.param_groups().size();
    LAMELLA_CHECK_VALUE(factor < 1, "ReduceLROnPlateau: expected 'factor' below 1, got ", factor);
    if (least_.empty()) least_.resize(groups, 0);
    LAMELLA_CHECK_VALUE(least_.size() == groups, "ReduceLROnPlateau: expected ", groups,
                        " numbers in 'min_lr', got ", least_.size());
  }
  virtual ~ReduceLROnPlateauSchedulerOf() = default;

  void step(float metric) {
    ++epoch_;
    if (is_better(metric)) {
      best_ = metric;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (waiting_ > 0) {
      --waiting_;
      bad_ = 0;
    }
    if (bad_ <= patience_) return;
    for (size_t i = 0; i < least_.size(); ++i) {
      auto& options = optimizer_->param_groups()[i].options();
      const double old = options.get_lr();
      const double rate = old * factor_ > least_[i] ? old * factor_ : least_[i];
      if (old - rate <= eps_) continue;
      options.set_lr(rate);
      if (verbose_) {
        std::printf("Epoch %d: reducing learning rate of group %zu to %g\n", epoch_, i, rate);
      }
    }
    waiting_ = cooldown_;
    bad_ = 0;
  }

 private:
  bool is_better(float metric) const {
    const double sign = mode_ == min ? -1 : 1;
    const double bound =
        threshold_mode_ == abs ? best_ + sign * threshold_ : best_ * (1 + sign * threshold_);
    return mode_ == min ? metric < bound : metric > bound;
  }

  OptimizerOf<lazy_>* optimizer_;
  SchedulerMode mode_;
  ThresholdMode threshold_mode_;
  float factor_;
  int patience_, cooldown_;
  double threshold_, eps_;
  bool verbose_;
  std::vector<float> least_;
  float best_;
  int epoch_ = 0, bad_ = 0, waiting_ = 0;
};
using ReduceLROnPlateauScheduler = ReduceLROnPlateauSchedulerOf<>;

}  // namespace lamella::optim
