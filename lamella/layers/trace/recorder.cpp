// Records a thread's calls as a Graph: see Note [Recording a trace].
#include "lamella/layers/trace/recorder.h"

#include <algorithm>

#include "lamella/abi/autograd.h"
#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/layer_fallback.h"
#include "lamella/dispatch/registry.h"
#include "lamella/dispatch/signature.h"
#include "lamella/layers/autograd/record.h"

namespace lamella::tracing {
namespace {

constexpr uint64_t kBelow =
    lamella::detail::functionality_bit(lamella::detail::Functionality::TracerBelowAutograd);
constexpr uint64_t kBoth = kTracingBits;
// Keys of the calls that autograd records.
constexpr uint64_t kHistory =
    lamella::detail::functionality_bit(lamella::detail::Functionality::AutogradRequired) |
    lamella::detail::functionality_bit(lamella::detail::Functionality::AutogradTangent);

// A plain pointer, for the library's thread-local block has no room for destructors.
thread_local Recorder* running = nullptr;

lamella_status run_top(const lamella_kernel*, const lamella_operator* op, uint64_t key_set,
                       const lamella_value* arguments, lamella_value* returns) {
  uint64_t keys = key_set & ~kBoth;
  Recorder* recorder = running;
  if (recorder == nullptr) return abi::call_boxed(op, keys, arguments, returns);
  if (abi::kernel_of(op, keys) == &autograd::kRecord) {
    return abi::call_boxed(op, keys | kBelow, arguments, returns);
  }
  if (recorder->is_decomposed(op, keys)) return abi::call_boxed(op, keys, arguments, returns);
  return (keys & kHistory) != 0 ? recorder->record_group(op, keys, arguments, returns)
                                : recorder->record(op, keys, arguments, returns);
}

lamella_status run_below(const lamella_kernel*, const lamella_operator* op, uint64_t key_set,
                         const lamella_value* arguments, lamella_value* returns) {
  uint64_t keys = key_set & ~kBoth;
  Recorder* recorder = running;
  if (recorder == nullptr) return abi::call_boxed(op, keys, arguments, returns);
  return recorder->record(op, keys, arguments, returns);
}

void register_kernels() {
  register_layer_fallback(DispatchKey::Tracer, &run_top, __FILE__, __LINE__);
  register_layer_fallback(DispatchKey::TracerBelowAutograd, &run_below, __FILE__, __LINE__);
}

constexpr ValueId kNumber = kNoValue - 1;  // marks a Python number, which is not a value

// Detects by version counters which arguments a call writes, as schemas do not always say so.
class Writes {
 public:
  Writes(const lamella_operator* op, const lamella_value* arguments)
      : arguments_(arguments), count_(std::min(op->argument_count, kMaxWatched)) {
    for (uint32_t i = 0; i < count_; ++i) versions_[i] = version(i);
  }
  // Bits of the arguments written since, where the schema names none.
  uint64_t seen(const TracingPlan& plan) const {
    if (!plan.facts->written.empty()) return 0;
    uint64_t bits = 0;
    if (plan.statistics != 0 && plan.trains >= 0 && arguments_[plan.trains].as.i != 0) {
      for (uint64_t left = plan.statistics; left != 0; left &= left - 1) {
        auto i = static_cast<uint32_t>(__builtin_ctzll(left));
        if (arguments_[i].tag == LAMELLA_TENSOR) bits |= uint64_t{1} << i;
      }
    }
    for (uint32_t i = 0; i < count_; ++i) bits |= uint64_t{versions_[i] != version(i)} << i;
    return bits;
  }

 private:
  static constexpr uint32_t kMaxWatched = 64;
  uint32_t version(uint32_t i) const {
    const lamella_value& value = arguments_[i];
    bool has = value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr &&
               value.as.tensor->storage != nullptr;
    return has ? lamella_tensor_version(value.as.tensor) : 0;
  }
  const lamella_value* arguments_;
  uint32_t count_;
  uint32_t versions_[kMaxWatched];
};

}  // namespace

bool Recorder::grad_enabled() {
  return (lamella_thread.modes & (LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_INFERENCE)) == 0;
}

Recorder* Recorder::current() { return is_tracing() ? running : nullptr; }

Recorder::Recorder(TraceOptions options) : options_(options), known_(256) {
  if (options_.locations && place_hooks().make_store != nullptr) {
    store_ = ObjectRef<>::adopt(place_hooks().make_store());
    graph_.set_store(store_);
  }
}
Recorder::~Recorder() { stop(); }

void Recorder::add_input(std::string name, const TensorBase& tensor) {
  LAMELLA_CHECK(find(tensor.impl()) == nullptr, "trace: expected inputs to be different tensors, ",
                "got one of them twice, again as '", name, "'");
  constexpr uint64_t batched =
      lamella::detail::functionality_bit(lamella::detail::Functionality::Batched);
  LAMELLA_CHECK((tensor.key_set() & batched) == 0, "trace: expected input '", name,
                "' to be a plain tensor, got one that vmap batches; trace the function that calls ",
                "vmap");
  ValueId root = root_of(tensor.impl());
  ValueId id = graph_.add_input(std::move(name), tensor);
  if (root != kNoValue) graph_.set_root(id, root);
  keep(id, tensor.impl(), true);
}
void Recorder::name_outside(ValueKind kind, std::string name, const TensorBase& tensor) {
  if (named_.emplace(tensor.impl(), Named{kind, std::move(name)}).second) {
    named_tensors_.push_back(tensor);
  }
}

namespace {
fork::Once registered;
}  // namespace

void Recorder::start() {
  LAMELLA_CHECK(running == nullptr,
                "trace: expected no other trace to be running on this thread, got one inside "
                "another");
  registered([] { register_kernels(); });
  grad_at_start_ = grad_enabled();
  running = this;
  lamella_thread.included |= kBoth;
}
void Recorder::stop() {
  if (running != this) return;
  running = nullptr;
  lamella_thread.included &= ~kBoth;
}

Graph Recorder::finish(ArrayRef<TensorBase> outputs) {
  stop();
  std::vector<ValueId> ids;
  for (const TensorBase& tensor : outputs) {
    ids.push_back(tensor.defined() ? value_of(tensor.impl(), false) : kNoValue);
  }
  for (ValueId id = 0; id < tensors_.size(); ++id) {
    graph_.set_requires_grad(id, tensors_[id].requires_grad());
  }
  graph_.set_outputs(std::move(ids));
  fold_groups();
  return graph_.ordered();
}

bool Recorder::is_decomposed(const lamella_operator* op, uint64_t keys) const {
  if (!options_.decompose) return false;
  auto* entry = entry_of(op);
  Slot slot = Registry::get().slot(entry, static_cast<DispatchKey>(lamella::detail::slot_of(keys)));
  return slot.entry != nullptr && slot.entry->key == DispatchKey::CompositeImplicitAutograd;
}

// ---- Calls -------------------------------------------------------------------------------------

uint32_t Recorder::place() { return store_ ? place_hooks().capture(store_.get()) : kNoPlace; }

GradMode Recorder::grad_mode() const {
  bool now = grad_enabled();
  return now == grad_at_start_ ? GradMode::kInherit : now ? GradMode::kOn : GradMode::kOff;
}

// Fills ids_ with the values of all tensors among the arguments. Returns true if the call's results
// depend on inputs, parameters, random numbers or side effects.
bool Recorder::read_arguments(const lamella_operator* op, const TracingPlan& plan,
                              const lamella_value* arguments) {
  ids_.clear();
  bool depends = plan.random || plan.acts;
  auto written = plan.facts->written.begin();
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    bool is_written = written != plan.facts->written.end() && *written == i;
    written += is_written;
    each_tensor_of(arguments[i], [&](lamella_tensor* tensor) {
      ValueId id = tensor == nullptr         ? kNoValue
                   : is_number(arguments[i]) ? kNumber
                                             : value_of(tensor, is_written && plan.overwrites);
      if (id < kNumber) depends = depends || this->depends(id);
      ids_.push_back(id);
    });
  }
  return depends;
}
void Recorder::add_arguments(const lamella_operator* op, const lamella_value* arguments,
                             ArrayRef<ValueId> ids) {
  const ValueId* next = ids.data();
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    const ValueId* first = next;
    each_tensor_of(arguments[i], [&](lamella_tensor*) { ++next; });
    ArrayRef<ValueId> here(first, static_cast<size_t>(next - first));
    bool number = here.size() == 1 && here[0] == kNumber;
    graph_.add_operand(arguments[i], number ? ArrayRef<ValueId>() : here);
  }
}
void Recorder::mark_written(const TracingPlan& plan, const lamella_value* arguments) {
  for (uint16_t i : plan.facts->written) {
    each_tensor_of(arguments[i], [&](lamella_tensor* tensor) {
      const Known* known = tensor != nullptr ? find(tensor) : nullptr;
      if (known != nullptr) depends_[graph_.value(known->id).root] = true;
    });
  }
}

lamella_status Recorder::record(const lamella_operator* op, uint64_t keys,
                                const lamella_value* arguments, lamella_value* returns) {
  bool returned = false, opened = false;
  try {
    release_unreadable();
    PlanRef<TracingPlan> held = plan_of(op);
    const TracingPlan& plan = *held;
    bool depends = read_arguments(op, plan, arguments);
    if (LAMELLA_UNLIKELY(plan.reads_elements) && depth_ == 0) {
      for (uint32_t i = 0; i < op->argument_count; ++i) {
        each_tensor_of(arguments[i], [&](lamella_tensor* tensor) {
          if (tensor != nullptr) note_read(tensor, plan.name.c_str());
        });
      }
    }
    uint32_t at = place();
    graph_.begin_node(op);
    opened = true;
    add_arguments(op, arguments, ids_);
    Writes writes(op, arguments);
    lamella_status status;
    {
      Pause off;
      status = abi::call_boxed(op, keys, arguments, returns);
    }
    if (status != LAMELLA_OK) {
      graph_.abandon_node();
      return status;
    }
    returned = true;
    for (uint32_t r = 0; r < op->return_count; ++r) {
      ids_.clear();
      each_tensor_of(returns[r], [&](lamella_tensor* tensor) {
        ids_.push_back(tensor == nullptr ? kNoValue : add_result(tensor, depends));
      });
      graph_.add_operand(returns[r], ids_);
    }
    graph_.end_node(at, grad_mode(), writes.seen(plan));
    opened = false;
    if (depends) mark_written(plan, arguments);
    return LAMELLA_OK;
  } catch (...) {
    lamella_status status = lamella::detail::status_of_current_exception();
    if (opened) graph_.abandon_node();
    for (uint32_t r = 0; returned && r < op->return_count; ++r) lamella_value_release(&returns[r]);
    return status;
  }
}

// See Note [Groups].
lamella_status Recorder::record_group(const lamella_operator* op, uint64_t keys,
                                      const lamella_value* arguments, lamella_value* returns) {
  bool returned = false;
  try {
    PlanRef<TracingPlan> held = plan_of(op);
    const TracingPlan& plan = *held;
    bool depends = read_arguments(op, plan, arguments);
    std::vector<ValueId> given = ids_;
    Group group{};
    group.first_node = static_cast<uint32_t>(graph_.nodes().size());
    group.first_value = static_cast<ValueId>(graph_.values().size());
    group.first_group = static_cast<uint32_t>(groups_.size());
    uint32_t at = place();
    Writes writes(op, arguments);
    lamella_status status;
    {
      struct Inside {
        uint32_t& depth;
        explicit Inside(uint32_t& of) : depth(++of) {}
        ~Inside() { --depth; }
      } inside(depth_);
      status = abi::call_boxed(op, keys, arguments, returns);
    }
    if (status != LAMELLA_OK) return status;
    returned = true;
    group.end_node = static_cast<uint32_t>(graph_.nodes().size());
    group.end_value = static_cast<ValueId>(graph_.values().size());
    std::vector<std::vector<ValueId>> made(op->return_count);
    for (uint32_t r = 0; r < op->return_count; ++r) {
      each_tensor_of(returns[r], [&](lamella_tensor* tensor) {
        if (tensor == nullptr) {
          made[r].push_back(kNoValue);
          return;
        }
        if (find(tensor) == nullptr && root_of(tensor) == kNoValue) {
          group.needed = true;
          made[r].push_back(add_result(tensor, depends));
          return;
        }
        ValueId id = value_of(tensor, false);
        if (id < group.first_value) {
          // A returned argument gets a value of its own, defined by this node.
          id = graph_.add_result(TensorBase::borrow(tensor), graph_.value(id).root);
          keep(id, tensor, depends, false);
        }
        made[r].push_back(id);
      });
    }
    // The node's operands are contiguous, and stored behind those of its parts.
    graph_.begin_node(op);
    add_arguments(op, arguments, given);
    for (uint32_t r = 0; r < op->return_count; ++r) graph_.add_operand(returns[r], made[r]);
    group.node = graph_.close_node(at, grad_mode(), writes.seen(plan));
    groups_.push_back(group);
    if (depends) mark_written(plan, arguments);
    return LAMELLA_OK;
  } catch (...) {
    lamella_status status = lamella::detail::status_of_current_exception();
    for (uint32_t r = 0; returned && r < op->return_count; ++r) lamella_value_release(&returns[r]);
    return status;
  }
}

void Recorder::fold_groups() {
  if (groups_.empty()) return;
  ArrayRef<Node> nodes = graph_.nodes();
  auto end = static_cast<uint32_t>(nodes.size());
  // The last node that uses each value, counted from 1; `end` + 1 for outputs.
  std::vector<uint32_t> last(graph_.values().size());
  for (uint32_t n = 0; n < end; ++n) {
    for (ValueId id : graph_.used_by(nodes[n])) last[id] = n + 1;
  }
  for (const Group& group : groups_) {
    for (ValueId id : graph_.used_by(group.node)) {
      last[id] = std::max(last[id], group.first_node + 1);
    }
  }
  for (ValueId id : graph_.outputs()) {
    if (id != kNoValue) last[id] = end + 1;
  }
  auto is_one = [&](const Group& group) {
    std::vector<ValueId> made = graph_.made_by(group.node);
    for (ValueId id = group.first_value; id < group.end_value; ++id) {
      bool inside = last[id] <= group.end_node || graph_.value(id).kind != ValueKind::kResult;
      if (!inside && std::find(made.begin(), made.end(), id) == made.end()) return false;
    }
    return true;
  };
  std::vector<Node> folded;
  auto copy = [&](uint32_t from, uint32_t to) {
    folded.insert(folded.end(), nodes.begin() + from, nodes.begin() + to);
  };
  auto fold = [&](auto&& self, uint32_t from, uint32_t to, uint32_t group_from,
                  uint32_t group_to) -> void {
    // The groups of this level, from the last one back.
    std::vector<uint32_t> level;
    for (uint32_t g = group_to; g > group_from; g = groups_[g - 1].first_group) {
      level.push_back(g - 1);
    }
    for (size_t k = level.size(); k-- > 0;) {
      const Group& group = groups_[level[k]];
      copy(from, group.first_node);
      if (is_one(group)) {
        folded.push_back(group.node);
      } else {
        self(self, group.first_node, group.end_node, group.first_group, level[k]);
        if (group.needed) folded.push_back(group.node);
      }
      from = group.end_node;
    }
    copy(from, to);
  };
  fold(fold, 0, end, 0, static_cast<uint32_t>(groups_.size()));
  graph_.set_nodes(std::move(folded));
}

void Recorder::note_read(lamella_tensor* tensor, const char* what) {
  ValueId id = kNoValue;
  const Known* known = find(tensor);
  if (known != nullptr) {
    id = known->id;
  } else {
    id = root_of(tensor);
  }
  if (id == kNoValue || !depends(id)) return;
  SourceLocation where;
  if (store_) where = place_hooks().describe(store_.get(), place());
  if (options_.strict) {
    std::string at = where.str();
    throw Error(lamella::str("trace: expected no element of a traced tensor to be read, got ", what,
                             at.empty() ? "" : " at " + at));
  }
  for (const Escape& escape : escapes_) {
    bool same_place = escape.where.file == where.file && escape.where.line == where.line;
    // One note per source line: bool(), int() and the like read through item().
    if (same_place && (!where.file.empty() || escape.what == what)) return;
  }
  escapes_.push_back({what, std::move(where)});
}

}  // namespace lamella::tracing
