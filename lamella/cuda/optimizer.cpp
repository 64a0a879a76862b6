// Fused steps of SGD and Adam.
#include "lamella/cuda/call.h"
#include "lamella/cuda/families.h"
#include "lamella/cuda/kernels/optimizer_parameters.h"

namespace lamella::cuda {
namespace {

using Tensors = std::vector<Tensor>;

// Number `i` on the device, which `kept` owns; false: it is none.
bool number_at(const Call& call, int i, ScalarType dtype, Tensors* kept, uint64_t* at) {
  if (call.is_none(i)) return true;
  const Tensor number = call.tensor(i);
  if (number.numel() != 1 || !number.is_cuda()) return false;
  kept->push_back(number.to(dtype));
  *at = address_of(kept->back());
  return true;
}

// The learning rate and, from `scale` on, grad_scale and found_inf.
bool take_numbers(const Call& call, int rate, int scale, Tensors* kept, OptimizerParameters* p) {
  if (!call.is_tensor(rate)) {
    p->lr = call.number(rate, 0);
  } else if (!number_at(call, rate, ScalarType::Double, kept, &p->rate)) {
    return false;
  }
  return number_at(call, scale, ScalarType::Float, kept, &p->grad_scale) &&
         number_at(call, scale + 1, ScalarType::Float, kept, &p->found_inf);
}

// The tensors of a step: the lists at `positions` are written, `steps` is Adam's count.
struct Lists {
  Tensors self, grads, first, second, largest, steps;
};
// The CPU checks, and serves, tensors in other orders.
bool are_alike(const Lists& lists) {
  const Tensor& model = lists.self.at(0);
  for (size_t i = 0; i < lists.self.size(); ++i) {
    const Tensor& p = lists.self[i];
    if (p.scalar_type() != model.scalar_type() || !p.is_non_overlapping_and_dense()) return false;
    for (const Tensors* list : {&lists.grads, &lists.first, &lists.second, &lists.largest}) {
      if (list->empty()) continue;
      const Tensor& t = list->at(i);
      if (t.sizes() != p.sizes() || t.strides() != p.strides() ||
          t.scalar_type() != p.scalar_type()) {
        return false;
      }
    }
    if (!lists.steps.empty() && lists.steps[i].numel() != 1) return false;
  }
  return true;
}
bool step(const Call& call, const Lists& lists, OptimizerParameters p, const char* kernel) {
  if (lists.self.empty()) return true;
  const char* suffix = suffix_of_type(lists.self[0].scalar_type());
  if (!is_floating_point(lists.self[0].scalar_type()) || suffix == nullptr || !are_alike(lists)) {
    return false;
  }
  Tensors counts;
  auto at = [](const Tensors& list, size_t i) {
    return list.empty() ? uint64_t{0} : address_of(list[i]);
  };
  int64_t end = 0;
  for (size_t i = 0; i < lists.self.size(); ++i) {
    Stepped& t = p.of[p.tensors];
    end += lists.self[i].numel();
    t = {end,
         at(lists.self, i),
         at(lists.grads, i),
         at(lists.first, i),
         at(lists.second, i),
         at(lists.largest, i),
         0,
         0};
    if (!lists.steps.empty()) {
      if (lists.steps[i].is_cuda()) {
        counts.push_back(lists.steps[i].to(ScalarType::Float));
        t.count = address_of(counts.back());
      } else {
        t.steps = lists.steps[i].item().toDouble();
      }
    }
    if (++p.tensors < kSteppedTensors && i + 1 < lists.self.size()) continue;
    if (!launch_named(call.device(), kernel, suffix, &p, end)) return false;
    p.tensors = 0;
    end = 0;
  }
  for (const Tensors* list : {&lists.self, &lists.first, &lists.second, &lists.largest}) {
    for (const Tensor& t : *list) lamella_tensor_bump_version(t.impl());
  }
  if (p.grad_scale != 0) {
    for (const Tensor& t : lists.grads) lamella_tensor_bump_version(t.impl());
  }
  return true;
}

bool sgd_body(Call& call) {
  Tensors kept;
  OptimizerParameters p{};
  p.weight_decay = call.number(3, 0);
  p.momentum = call.number(4, 0);
  p.dampening = call.number(6, 0);
  p.nesterov = call.flag(7) ? 1 : 0;
  p.maximize = call.flag(8) ? 1 : 0;
  p.is_first = call.flag(9) ? 1 : 0;
  if (!take_numbers(call, 5, 10, &kept, &p)) return false;
  Lists lists{call.tensors(0), call.tensors(1), {}, {}, {}, {}};
  if (p.momentum != 0) lists.first = call.tensors(2);
  return step(call, lists, p, "sgd_step");
}
bool adam(Call& call, bool decoupled) {
  Tensors kept;
  OptimizerParameters p{};
  p.beta1 = call.number(7, 0);
  p.beta2 = call.number(8, 0);
  p.weight_decay = call.number(9, 0);
  p.eps = call.number(10, 0);
  p.maximize = call.flag(12) ? 1 : 0;
  p.decoupled = decoupled ? 1 : 0;
  if (!take_numbers(call, 6, 13, &kept, &p)) return false;
  Lists lists{call.tensors(0), call.tensors(1), call.tensors(2), call.tensors(3), {},
              call.tensors(5)};
  if (call.flag(11)) lists.largest = call.tensors(4);
  return step(call, lists, p, "adam_step");
}
bool adam_body(Call& call) { return adam(call, false); }
bool adamw_body(Call& call) { return adam(call, true); }

}  // namespace

void register_optimizer(Library& aten) {
  register_calls<&sgd_body>(aten, "_fused_sgd_ _fused_sgd_.tensor_lr");
  register_calls<&adam_body>(aten, "_fused_adam_ _fused_adam_.tensor_lr");
  register_calls<&adamw_body>(aten, "_fused_adamw_ _fused_adamw_.tensor_lr");
}

}  // namespace lamella::cuda
