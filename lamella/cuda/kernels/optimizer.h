// Steps of SGD and Adam over the tensors of many parameters, with the CPU's formulas. What decides
// whether and how far a step goes (the learning rate, the scale of gradients, whether one is
// infinite, the count of steps) is read on the device, so that the host never waits for it.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/optimizer_parameters.h"
#include "lamella/cuda/kernels/walk.h"

namespace lamella::cuda {

LAMELLA_DEVICE double number_or(uint64_t address, double otherwise) {
  return address == 0 ? otherwise
                      : static_cast<double>(*reinterpret_cast<const float*>(memory_at(address)));
}
LAMELLA_DEVICE double rate_of(const OptimizerParameters& p) {
  return p.rate == 0 ? p.lr : *device_pointer<const double>(p.rate);
}
template <class T>
struct Element {
  using C = computed_as<T>;
  T* at;
  LAMELLA_DEVICE Element(uint64_t address, int64_t i) : at(device_pointer<T>(address) + i) {}
  LAMELLA_DEVICE C get() const { return loaded(*at); }
  LAMELLA_DEVICE void set(C value) const { *at = stored_as<T>(value); }
};
// The gradient with its scale and sign applied; the scaled gradient is stored.
template <class T, class C = computed_as<T>>
LAMELLA_DEVICE C taken(const OptimizerParameters& p, Element<T> g, double scale) {
  C value = g.get();
  if (scale != 1) {
    value /= static_cast<C>(scale);
    g.set(value);
  }
  return p.maximize != 0 ? -value : value;
}

template <class T>
LAMELLA_DEVICE void sgd_step(const OptimizerParameters& p, int64_t thread, int64_t threads) {
  using C = computed_as<T>;
  if (number_or(p.found_inf, 0) == 1) return;
  const double scale = number_or(p.grad_scale, 1);
  const C lr = static_cast<C>(rate_of(p)), decay = static_cast<C>(p.weight_decay),
          momentum = static_cast<C>(p.momentum), fresh = static_cast<C>(1 - p.dampening);
  int tensor = 0;
  for (int64_t i = thread; i < p.of[p.tensors - 1].end; i += threads) {
    while (i >= p.of[tensor].end) ++tensor;
    const Stepped& t = p.of[tensor];
    const int64_t at = i - (tensor > 0 ? p.of[tensor - 1].end : 0);
    const Element<T> parameter(t.p, at);
    const C now = parameter.get();
    C d = taken(p, Element<T>(t.g, at), scale) + decay * now;
    if (t.first != 0) {
      const Element<T> buffer(t.first, at);
      const C next = p.is_first != 0 ? d : momentum * buffer.get() + fresh * d;
      buffer.set(next);
      d = p.nesterov != 0 ? d + momentum * next : next;
    }
    parameter.set(now - lr * d);
  }
}

template <class T>
LAMELLA_DEVICE void adam_step(const OptimizerParameters& p, int64_t thread, int64_t threads) {
  using C = computed_as<T>;
  if (number_or(p.found_inf, 0) == 1) return;
  const double scale = number_or(p.grad_scale, 1), lr = rate_of(p);
  const C added = p.decoupled != 0 ? C(0) : static_cast<C>(p.weight_decay);
  const C shrunk = p.decoupled != 0 ? static_cast<C>(1 - lr * p.weight_decay) : C(1);
  const C beta2 = static_cast<C>(p.beta2), rest1 = static_cast<C>(1 - p.beta1),
          rest2 = static_cast<C>(1 - p.beta2), eps = static_cast<C>(p.eps);
  int tensor = 0, known = -1;
  C step{}, root{};
  for (int64_t i = thread; i < p.of[p.tensors - 1].end; i += threads) {
    while (i >= p.of[tensor].end) ++tensor;
    const Stepped& t = p.of[tensor];
    if (known != tensor) {
      known = tensor;
      const double steps = number_or(t.count, t.steps);
      step = static_cast<C>(lr / (1 - pow(p.beta1, steps)));
      root = static_cast<C>(sqrt(1 - pow(p.beta2, steps)));
    }
    const int64_t at = i - (tensor > 0 ? p.of[tensor - 1].end : 0);
    const Element<T> parameter(t.p, at), average(t.first, at), square(t.second, at);
    const C now = parameter.get() * shrunk;
    const C d = taken(p, Element<T>(t.g, at), scale) + added * now;
    C mean = average.get();
    mean += rest1 * (d - mean);
    C second = beta2 * square.get() + rest2 * d * d;
    average.set(mean);
    square.set(second);
    if (t.largest != 0) {
      const Element<T> largest(t.largest, at);
      const C most = largest.get();
      second = second > most ? second : most;
      largest.set(second);
    }
    parameter.set(now - step * mean / (static_cast<C>(sqrt(second)) / root + eps));
  }
}

// f(kernel, Parameters, body)
#define LAMELLA_OPTIMIZER_KERNELS(f) LAMELLA_EACH_FLOAT(LAMELLA_STEP_KERNELS, f)
#define LAMELLA_STEP_KERNELS(f, T, suffix)               \
  f(sgd_step_##suffix, OptimizerParameters, sgd_step<T>) \
      f(adam_step_##suffix, OptimizerParameters, adam_step<T>)

}  // namespace lamella::cuda
