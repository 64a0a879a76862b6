// Random operators under vmap: see Note [Drawing under vmap].
#include "lamella/layers/vmap/random.h"
#include "lamella/dispatch/boxed_tensors.h"

#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {
namespace {

// The level that currently handles the call; levels handle it one after the other.
struct Turn {
  Level* level;
};
thread_local Turn* turn = nullptr;

struct WithTurn {
  explicit WithTurn(Level* level) : now{level}, before(turn) { turn = &now; }
  ~WithTurn() { turn = before; }
  Turn now;
  Turn* before;
};

// Arguments that may be replaced.
struct Arguments {
  Arguments(const lamella_operator* op, const lamella_value* from)
      : values(from, from + op->argument_count) {}
  void set(uint32_t i, IValue value) {
    kept.push_back(std::move(value));
    values[i] = kept.back().value();
  }
  std::vector<lamella_value> values;
  std::vector<IValue> kept;
};

Tensor tensor_of(const lamella_value& value) {
  return Tensor(TensorBase::borrow(value.tag == LAMELLA_TENSOR ? value.as.tensor : nullptr));
}

// Passes the call on to the next outer level, or, after the last, redispatches it.
void go_on(const lamella_operator* op, const Level& level, const lamella_value* arguments,
           lamella_value* returns) {
  lamella_status status;
  if (level.outer != nullptr) {
    WithTurn next(level.outer);
    status = abi::call_boxed(op, key_set_of_call(op, arguments), arguments, returns);
  } else {
    ExcludeDispatchKeyGuard guard(DispatchKey::VmapMode);
    status = abi::call_boxed(op, key_set_of_call(op, arguments), arguments, returns);
  }
  lamella::detail::check(status);
}

// Wraps the returned tensors as batched at the level.
void batch_returns(const lamella_operator* op, const Level& level, lamella_value* returns) {
  for (uint32_t r = 0; r < op->return_count; ++r) {
    if (returns[r].tag != LAMELLA_TENSOR || returns[r].as.tensor == nullptr) continue;
    TensorBase made = TensorBase::adopt(returns[r].as.tensor);
    returns[r].as.tensor = nullptr;
    returns[r].as.tensor = hide(made, level.number).unsafe_release();
  }
}

// Makes a factory's tensors of all examples at once, or one by one if it has no `size`.
void make_different(const BatchingPlan& plan, const lamella_operator* op, const Level& level,
                    const lamella_value* arguments, lamella_value* returns) {
  Arguments changed(op, arguments);
  int size = plan.find("size");
  if (size >= 0 && arguments[size].tag == LAMELLA_INT_LIST) {
    auto* given = static_cast<const int64_t*>(arguments[size].as.pointer);
    std::vector<int64_t> sizes{level.size};
    sizes.insert(sizes.end(), given, given + arguments[size].size);
    changed.set(static_cast<uint32_t>(size), IValue(sizes));
    go_on(op, level, changed.values.data(), returns);
    return batch_returns(op, level, returns);
  }
  LAMELLA_CHECK(level.size > 0 && op->return_count == 1, plan.name,
                ": expected a batch of at least one example under vmap");
  std::vector<Tensor> all;
  for (int64_t b = 0; b < level.size; ++b) {
    go_on(op, level, arguments, returns);
    all.push_back(IValue::adopt(returns[0]).toTensor());
  }
  returns[0] = IValue(hide(stack(all, 0), level.number)).unsafe_release();
}

void draw_different(const BatchingPlan& plan, const lamella_operator* op, const Level& level,
                    const lamella_value* arguments, lamella_value* returns) {
  Arguments changed(op, arguments);
  int unbatched = -1;
  bool batched = false;
  for (uint32_t i : plan.facts->tensors) {
    Tensor t = tensor_of(arguments[i]);
    if (!t.defined()) continue;
    if (has_level(t.impl(), level.number)) {
      batched = true;
      continue;
    }
    LAMELLA_CHECK(!plan.facts->arguments[i].is_written, plan.name, ": expected '",
                  plan.arguments[i].name,
                  "', which is written, to be batched under vmap with randomness \"different\", "
                  "because one tensor cannot hold other numbers for each of ",
                  level.size, " examples");
    if (unbatched < 0) unbatched = static_cast<int>(i);
  }
  if (!batched && unbatched < 0) return make_different(plan, op, level, arguments, returns);
  if (!batched) {
    auto i = static_cast<uint32_t>(unbatched);
    changed.set(i, IValue(hide(expose(tensor_of(arguments[i]), level), level.number)));
  }
  go_on(op, level, changed.values.data(), returns);
}

// Whether the result depends on the shape of the tensor only.
bool reads_shape_only(const BatchingPlan& plan) {
  return plan.name.ends_with("_like") || (plan.name == "bernoulli" && plan.find("p") >= 0);
}

void draw_same(const BatchingPlan& plan, const lamella_operator* op, const Level& level,
               const lamella_value* arguments, lamella_value* returns) {
  Arguments changed(op, arguments);
  Tensor written;
  for (uint32_t i : plan.facts->tensors) {
    Tensor t = tensor_of(arguments[i]);
    if (!t.defined() || !has_level(t.impl(), level.number)) continue;
    LAMELLA_CHECK(level.size > 0, plan.name, ": expected a batch of at least one example");
    Tensor example = Tensor(expose(t, level)).select(0, 0);
    if (plan.facts->arguments[i].is_written) {
      written = t;
      example = empty_like(example);
    } else {
      LAMELLA_CHECK(reads_shape_only(plan), plan.name, ": expected '", plan.arguments[i].name,
                    "' not to be batched under vmap with randomness \"same\", because numbers that "
                    "depend on it differ from example to example; use randomness \"different\"");
    }
    changed.set(i, IValue(example));
  }
  go_on(op, level, changed.values.data(), returns);
  if (!written.defined()) return;
  for (uint32_t r = 0; r < op->return_count; ++r) {
    Tensor drawn = IValue::adopt(returns[r]).toTensor();
    returns[r] = lamella_value{};
    written.copy_(drawn);
    returns[r] = IValue(written).unsafe_release();
  }
}

// True if the call draws nothing, as dropout outside of training or attention without dropout.
bool draws_nothing(const BatchingPlan& plan, const lamella_value* arguments) {
  for (const char* name : {"train", "training"}) {
    int i = plan.find(name);
    if (i >= 0 && arguments[i].tag == LAMELLA_BOOL && arguments[i].as.i == 0) return true;
  }
  int i = plan.find("dropout_p");
  if (i < 0 && plan.name.find("dropout") != std::string::npos) i = plan.find("p");
  return i >= 0 && arguments[i].tag == LAMELLA_DOUBLE && arguments[i].as.d == 0;
}

}  // namespace

void random_rule(BatchedCall& call) {
  if (call.plan().name != "multinomial" || call.dim(0) != 2) return pointwise_rule(call);
  // The operator takes the rows of [batch, rows, classes] one after the other.
  Tensor rows = call.tensor(0);
  call.set(0, rows.flatten(0, 1));
  call.run_and([&](const Tensor& drawn) {
    return drawn.reshape({call.batch_size(), rows.size(1), drawn.size(1)});
  });
}

lamella_status draw(const lamella_kernel*, const lamella_operator* op, uint64_t,
                    const lamella_value* arguments, lamella_value* returns) noexcept {
  try {
    const BatchingPlan& plan = plan_of(op);
    Level* level = turn != nullptr ? turn->level : innermost();
    if (level == nullptr) {
      ExcludeDispatchKeyGuard guard(DispatchKey::VmapMode);
      return abi::call_boxed(op, key_set_of_call(op, arguments), arguments, returns);
    }
    if (plan.rule == &composite_rule) {
      // The operators that it calls draw. One that has nothing batched yet must have.
      Arguments changed(op, arguments);
      for (uint32_t i : plan.facts->tensors) {
        Tensor t = tensor_of(arguments[i]);
        if (level->randomness != Randomness::kDifferent || plan.writes() || !t.defined()) break;
        changed.set(i, IValue(batch_over_all(t)));
        break;
      }
      uint64_t keys = key_set_of_call(op, changed.values.data()) & ~kModeBit;
      return abi::call_boxed(op, keys, changed.values.data(), returns);
    }
    if (draws_nothing(plan, arguments)) {
      return abi::call_boxed(op, key_set_of_call(op, arguments) & ~kModeBit, arguments, returns);
    }
    switch (level->randomness) {
      case Randomness::kError:
        throw Error(str(plan.name,
                        ": expected 'randomness' of vmap to say what drawing random numbers means, "
                        "got \"error\"; pass randomness=\"different\" for other numbers in each "
                        "example, or \"same\""));
      case Randomness::kDifferent:
        draw_different(plan, op, *level, arguments, returns);
        break;
      case Randomness::kSame:
        draw_same(plan, op, *level, arguments, returns);
        break;
    }
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

}  // namespace lamella::vmap
