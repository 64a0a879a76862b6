// Runs a graph: boxed calls in order; values are released after their last use.
#include <array>
#include <atomic>

#include "lamella/abi/autograd.h"
#include "lamella/core/error.h"
#include "lamella/layers/trace/graph.h"
#include "lamella/layers/trace/operators.h"

namespace lamella::tracing {

// The values whose last use is each node: those of node n begin at released[begin[n]].
struct Graph::RunPlan {
  std::vector<uint32_t> begin;
  std::vector<ValueId> released;
};

namespace {

constexpr size_t kFewArguments = 64;

lamella_value plain_value(uint8_t tag) { return {{0}, 0, tag, 0, 0}; }

// A nested value with its placeholders replaced by tensors.
IValue filled(const lamella_value& value, const ValueId** next, lamella_tensor* const* tensors) {
  auto one = [&] {
    ValueId id = *(*next)++;
    return TensorBase::borrow(id == kNoValue ? nullptr : tensors[id]);
  };
  switch (value.tag) {
    case LAMELLA_TENSOR:
      return IValue(one());
    case LAMELLA_TENSOR_LIST: {
      std::vector<TensorBase> list;
      for (uint32_t i = 0; i < value.size; ++i) list.push_back(one());
      return IValue(list);
    }
    case LAMELLA_LIST:
    case LAMELLA_TUPLE:
    case LAMELLA_DICT: {
      std::vector<IValue> items;
      for (uint32_t i = 0; i < value.size; ++i) {
        items.push_back(
            filled(static_cast<const lamella_value*>(value.as.pointer)[i], next, tensors));
      }
      return value.tag == LAMELLA_LIST    ? IValue::list(items)
             : value.tag == LAMELLA_TUPLE ? IValue::tuple(items)
                                          : IValue::dict(items);
    }
    default:
      return IValue::from_borrowed(value);
  }
}

class GradModeOf {
 public:
  explicit GradModeOf(GradMode mode) {
    if (mode == GradMode::kInherit) return;
    constexpr uint32_t bit = LAMELLA_MODE_NO_GRAD;
    before_ = lamella_set_modes(bit, mode == GradMode::kOff ? bit : 0) & bit;
    set_ = true;
  }
  ~GradModeOf() {
    if (set_) lamella_set_modes(LAMELLA_MODE_NO_GRAD, before_);
  }

 private:
  uint32_t before_ = 0;
  bool set_ = false;
};

// The tensors of one run, by value. Owns those that the run made.
class Slots {
 public:
  explicit Slots(size_t count) : tensors_(count), owned_(count) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() {
    for (ValueId id = 0; id < tensors_.size(); ++id) release(id);
  }
  lamella_tensor* const* data() const { return tensors_.data(); }
  lamella_tensor* operator[](ValueId id) const { return id == kNoValue ? nullptr : tensors_[id]; }
  void borrow(ValueId id, lamella_tensor* tensor) { tensors_[id] = tensor; }
  void own(ValueId id, lamella_tensor* tensor) {
    release(id);
    tensors_[id] = tensor;
    owned_[id] = true;
  }
  void release(ValueId id) {
    if (!owned_[id]) return;
    owned_[id] = false;
    TensorBase::adopt(std::exchange(tensors_[id], nullptr));
  }

 private:
  std::vector<lamella_tensor*> tensors_;
  std::vector<bool> owned_;
};

// Arguments of one call. Owns lists and nested values that the graph does not hold.
class Arguments {
 public:
  Arguments(const Graph& graph, const Node& node, const Slots& slots) {
    ArrayRef<Operand> operands = graph.arguments(node);
    if (operands.size() > kFewArguments) {
      many_.resize(operands.size());
      values_ = many_.data();
    }
    size_t listed = 0;
    for (const Operand& operand : operands)
      listed += operand.form == Operand::kList ? operand.count : 0;
    lists_.reserve(listed);
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& operand = operands[i];
      ArrayRef<ValueId> ids = graph.tensors(operand);
      switch (operand.form) {
        case Operand::kPlain:
          values_[i] = operand.value.value();
          break;
        case Operand::kTensor:
          values_[i] = plain_value(LAMELLA_TENSOR);
          values_[i].as.tensor = slots[ids[0]];
          break;
        case Operand::kList:
          values_[i] = plain_value(LAMELLA_TENSOR_LIST);
          values_[i].size = operand.count;
          values_[i].as.pointer = lists_.data() + lists_.size();
          for (ValueId id : ids) lists_.push_back(slots[id]);
          break;
        case Operand::kNested: {
          const ValueId* next = ids.data();
          kept_.push_back(filled(operand.value.value(), &next, slots.data()));
          values_[i] = kept_.back().value();
          break;
        }
      }
    }
  }
  const lamella_value* data() const { return values_; }

 private:
  std::array<lamella_value, kFewArguments> few_;
  lamella_value* values_ = few_.data();
  std::vector<lamella_value> many_;
  std::vector<lamella_tensor*> lists_;
  std::vector<IValue> kept_;
};

[[noreturn]] void throw_at(const Graph& graph, const Node& node, lamella_status status) {
  if (status == LAMELLA_FOREIGN_ERROR) lamella::detail::throw_status(status);
  std::string text = lamella_error_text();
  text += lamella::str(" (node ", &node - graph.nodes().data(),
                       " of the graph: ", plan_of(node.op)->name);
  std::string where = graph.location(node).str();
  text += where.empty() ? ")" : ", recorded at " + where + ")";
  detail::fail(status, text);
  lamella::detail::throw_status(status);
}

}  // namespace

const Graph::RunPlan& Graph::plan() const {
  std::shared_ptr<const RunPlan> found = std::atomic_load(&plan_.plan);
  if (found != nullptr) return *found;
  std::vector<uint32_t> last(values_.size(), kNoValue);
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    for (ValueId id : made_by(nodes_[n])) last[id] = n;
    for (ValueId id : used_by(nodes_[n])) last[id] = n;
  }
  for (ValueId id : outputs_) {
    if (id != kNoValue) last[id] = kNoValue;
  }
  auto made = std::make_shared<RunPlan>();
  made->begin.assign(nodes_.size() + 1, 0);
  for (ValueId id = 0; id < values_.size(); ++id) {
    if (values_[id].kind == ValueKind::kResult && last[id] != kNoValue) ++made->begin[last[id] + 1];
  }
  for (size_t n = 0; n < nodes_.size(); ++n) made->begin[n + 1] += made->begin[n];
  made->released.resize(made->begin.back());
  std::vector<uint32_t> at = made->begin;
  for (ValueId id = 0; id < values_.size(); ++id) {
    if (values_[id].kind == ValueKind::kResult && last[id] != kNoValue) {
      made->released[at[last[id]]++] = id;
    }
  }
  // A plan that another thread stored first is used instead. The stored plan lives as long as the
  // graph.
  std::shared_ptr<const RunPlan> none;
  std::atomic_compare_exchange_strong(&plan_.plan, &none,
                                      std::shared_ptr<const RunPlan>(std::move(made)));
  return *std::atomic_load(&plan_.plan);
}

void Graph::check_input(size_t i, const TensorBase& input) const {
  ValueId id = inputs_[i];
  LAMELLA_CHECK(input.defined(), "graph: expected input ", i, " ('", name(id), "') to be ",
                type_text(id), ", got an undefined tensor");
  const Value& v = values_[id];
  if (input.scalar_type() == v.dtype && input.sizes() == sizes(id) &&
      input.device().type() == v.device.type()) {
    return;
  }
  std::string got = dtype_name(input.scalar_type());
  got += lamella::str(input.sizes());
  if (!input.device().is_cpu()) got += " on " + input.device().str();
  throw Error(lamella::str("graph: expected input ", i, " ('", name(id), "') to be ", type_text(id),
                           ", as recorded, got ", got));
}

std::vector<TensorBase> Graph::run(ArrayRef<TensorBase> inputs) const {
  LAMELLA_CHECK(inputs.size() == inputs_.size(), "graph: expected ", inputs_.size(),
                " inputs, got ", inputs.size());
  const RunPlan& plan = this->plan();
  Slots slots(values_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_input(i, inputs[i]);
    slots.borrow(inputs_[i], inputs[i].impl());
  }
  for (ValueId id = 0; id < values_.size(); ++id) {
    const Value& v = values_[id];
    if (v.kind == ValueKind::kParameter || v.kind == ValueKind::kConstant) {
      slots.borrow(id, outside_[v.outside].tensor.impl());
    }
  }
  std::vector<lamella_value> returned;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    Arguments arguments(*this, node, slots);
    returned.assign(node.return_count, plain_value(LAMELLA_NONE));
    lamella_status status;
    {
      GradModeOf mode(node.grad_mode);
      status = lamella_call_boxed(node.op, arguments.data(), node.argument_count, returned.data(),
                                  node.return_count);
    }
    if (status != LAMELLA_OK) throw_at(*this, node, status);
    ArrayRef<Operand> results = returns(node);
    bool fits = true;
    for (size_t r = 0; r < results.size(); ++r) {
      IValue owned = IValue::adopt(returned[r]);
      ArrayRef<ValueId> ids = tensors(results[r]);
      size_t next = 0;
      each_tensor_of(owned.value(), [&](lamella_tensor* tensor) {
        if (next < ids.size() && ids[next] != kNoValue && tensor != nullptr) {
          slots.own(ids[next], TensorBase::borrow(tensor).unsafe_release());
        } else {
          fits = fits && next < ids.size() && ids[next] == kNoValue && tensor == nullptr;
        }
        ++next;
      });
      fits = fits && next == ids.size();
    }
    LAMELLA_CHECK(fits, "graph: expected node ", n, " to return as many tensors as when it was ",
                  "recorded, got others from ", plan_of(node.op)->name);
    for (uint32_t k = plan.begin[n]; k < plan.begin[n + 1]; ++k) slots.release(plan.released[k]);
  }
  std::vector<TensorBase> outputs;
  outputs.reserve(outputs_.size());
  for (ValueId id : outputs_) outputs.push_back(TensorBase::borrow(slots[id]));
  return outputs;
}

}  // namespace lamella::tracing
