// Fused steps of optimizers: all parameters in one call.
#include <cmath>
#include <vector>

#include "lamella/kernels/cpu/simd/optimizer.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {

void check_count(const char* op, const char* name, TensorList list, size_t count) {
  LAMELLA_CHECK(list.size() == count, op, ": expected '", name, "' to have ", count,
                " tensors, one for each in 'self', got ", list.size());
}

// The tensors that a step reads and writes for one parameter, with a common memory order.
class Operands {
 public:
  static constexpr size_t kMaxTensors = 5;

  void add(const char* op, const char* name, const Tensor& tensor, bool written = true) {
    given_[count_] = tensor;
    written_[count_] = written;
    if (written) check_no_internal_overlap(op, name, tensor);
    if (count_ > 0) {
      const Tensor& first = given_[0];
      LAMELLA_CHECK(
          tensor.sizes().equals(first.sizes()) && tensor.scalar_type() == first.scalar_type(), op,
          ": expected the tensors in '", name, "' to have shape and dtype of those ", "in 'self', ",
          first.sizes(), " and ", first.scalar_type(), ", got ", tensor.sizes(), " and ",
          tensor.scalar_type());
      ordered_ = ordered_ && tensor.strides().equals(first.strides());
    } else {
      LAMELLA_CHECK_NOT_IMPLEMENTED(tensor.is_floating_point(), op,
                                    ": expected the tensors in 'self' to be floating point, got ",
                                    tensor.scalar_type());
      ordered_ = tensor.is_non_overlapping_and_dense();
    }
    ++count_;
  }
  // f(data, numel); data has an entry for each operand added.
  template <class F>
  void run(F&& f) {
    void* data[kMaxTensors] = {};
    Tensor held[kMaxTensors];
    for (size_t i = 0; i < count_; ++i) {
      if (!ordered_) held[i] = given_[i].contiguous();
      data[i] = (ordered_ ? given_[i] : held[i]).data_ptr();
    }
    f(data, given_[0].numel());
    for (size_t i = 0; i < count_ && !ordered_; ++i) {
      if (written_[i] && !held[i].is_same(given_[i])) given_[i].copy_(held[i]);
    }
  }

 private:
  Tensor given_[kMaxTensors];
  bool written_[kMaxTensors] = {};
  size_t count_ = 0;
  bool ordered_ = true;
};

double number_in(const std::optional<Tensor>& tensor, double missing) {
  return tensor && tensor->defined() ? tensor->item().toDouble() : missing;
}

void sgd(TensorList self, TensorList grads, TensorList buffers, SgdStep step,
         const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  const char* op = "_fused_sgd_";
  check_count(op, "grads", grads, self.size());
  bool momentum = step.momentum != 0;
  if (momentum) check_count(op, "momentum_buffer_list", buffers, self.size());
  if (self.empty() || self[0].is_meta() || number_in(found_inf, 0) == 1) return;
  step.grad_scale = number_in(grad_scale, 1);
  std::vector<Operands> all(self.size());  // checked before any is written
  for (size_t i = 0; i < self.size(); ++i) {
    all[i].add(op, "self", self[i]);
    all[i].add(op, "grads", grads[i], step.grad_scale != 1);
    if (momentum) all[i].add(op, "momentum_buffer_list", buffers[i]);
  }
  for (size_t i = 0; i < self.size(); ++i) {
    all[i].run([&](void* const* data, int64_t n) {
      parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
        sgd_on(kCPU, self[i].scalar_type(), step, data[0], data[1], data[2], begin, end);
      });
    });
  }
}

void adam(const char* op, TensorList self, TensorList grads, TensorList averages,
          TensorList squares, TensorList largest, TensorList steps, AdamStep step, bool amsgrad,
          const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  check_count(op, "grads", grads, self.size());
  check_count(op, "exp_avgs", averages, self.size());
  check_count(op, "exp_avg_sqs", squares, self.size());
  check_count(op, "state_steps", steps, self.size());
  if (amsgrad) check_count(op, "max_exp_avg_sqs", largest, self.size());
  if (self.empty() || self[0].is_meta() || number_in(found_inf, 0) == 1) return;
  step.grad_scale = number_in(grad_scale, 1);
  std::vector<Operands> all(self.size());  // checked before any is written
  std::vector<double> counts;
  for (size_t i = 0; i < self.size(); ++i) {
    all[i].add(op, "self", self[i]);
    all[i].add(op, "grads", grads[i], step.grad_scale != 1);
    all[i].add(op, "exp_avgs", averages[i]);
    all[i].add(op, "exp_avg_sqs", squares[i]);
    if (amsgrad) all[i].add(op, "max_exp_avg_sqs", largest[i]);
    LAMELLA_CHECK(steps[i].numel() == 1, op,
                  ": expected the tensors in 'state_steps' to hold one number, got ",
                  steps[i].sizes());
    counts.push_back(steps[i].item().toDouble());
  }
  for (size_t i = 0; i < self.size(); ++i) {
    step.correction1 = 1 - std::pow(step.beta1, counts[i]);
    step.correction2 = 1 - std::pow(step.beta2, counts[i]);
    all[i].run([&](void* const* data, int64_t n) {
      parallel_for(0, n, kGrainSize / 4, [&](int64_t begin, int64_t end) {
        adam_on(kCPU, self[i].scalar_type(), step, data[0], data[1], data[2], data[3], data[4],
                begin, end);
      });
    });
  }
}
}  // namespace

void _fused_sgd_(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                 double weight_decay, double momentum, double lr, double dampening, bool nesterov,
                 bool maximize, bool is_first_step, const std::optional<Tensor>& grad_scale,
                 const std::optional<Tensor>& found_inf) {
  sgd(self, grads, momentum_buffer_list,
      {lr, weight_decay, momentum, dampening, 1, nesterov, maximize, is_first_step}, grad_scale,
      found_inf);
}
void _fused_sgd_(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                 double weight_decay, double momentum, const Tensor& lr, double dampening,
                 bool nesterov, bool maximize, bool is_first_step,
                 const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  double rate = lr.is_meta() ? 0 : lr.item().toDouble();
  sgd(self, grads, momentum_buffer_list,
      {rate, weight_decay, momentum, dampening, 1, nesterov, maximize, is_first_step}, grad_scale,
      found_inf);
}

#define LAMELLA_ADAM(name, decoupled)                                                              \
  void name(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,        \
            TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,           \
            double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,            \
            const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {     \
    adam(#name, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,                  \
         {lr, beta1, beta2, weight_decay, eps, 1, 1, 1, maximize, decoupled}, amsgrad, grad_scale, \
         found_inf);                                                                               \
  }                                                                                                \
  void name(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,        \
            TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr, double beta1,    \
            double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,            \
            const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {     \
    double rate = lr.is_meta() ? 0 : lr.item().toDouble();                                         \
    adam(#name, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,                  \
         {rate, beta1, beta2, weight_decay, eps, 1, 1, 1, maximize, decoupled}, amsgrad,           \
         grad_scale, found_inf);                                                                   \
  }
LAMELLA_ADAM(_fused_adam_, false)
LAMELLA_ADAM(_fused_adamw_, true)
#undef LAMELLA_ADAM

}  // namespace lamella::native
