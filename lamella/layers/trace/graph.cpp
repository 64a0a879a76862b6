// Graphs as data: reading, building, reordering, and removing dead code.
#include "lamella/layers/trace/graph.h"

#include "lamella/core/error.h"
#include "lamella/layers/trace/operators.h"

namespace lamella::tracing {
namespace {

PlaceHooks hooks;

IntArrayRef sizes_of(const lamella_tensor* t) { return {t->sizes, static_cast<size_t>(t->ndim)}; }
IntArrayRef strides_of(const lamella_tensor* t) {
  return {t->strides, static_cast<size_t>(t->ndim)};
}
Device device_of(const lamella_tensor* t) {
  return Device(static_cast<DeviceType>(t->device_type), t->device_index);
}

bool holds_tensor(const lamella_value& value) {
  bool any = false;
  each_tensor_of(value, [&](lamella_tensor*) { any = true; });
  return any;
}

// The value with an undefined tensor in place of each tensor.
IValue without_tensors(const lamella_value& value) {
  switch (value.tag) {
    case LAMELLA_TENSOR:
      return IValue(TensorBase());
    case LAMELLA_TENSOR_LIST:
      return IValue(std::vector<TensorBase>(value.size));
    case LAMELLA_LIST:
    case LAMELLA_TUPLE:
    case LAMELLA_DICT: {
      std::vector<IValue> items;
      for (uint32_t i = 0; i < value.size; ++i) {
        items.push_back(without_tensors(static_cast<const lamella_value*>(value.as.pointer)[i]));
      }
      return value.tag == LAMELLA_LIST    ? IValue::list(items)
             : value.tag == LAMELLA_TUPLE ? IValue::tuple(items)
                                          : IValue::dict(items);
    }
    default:
      return IValue::from_borrowed(value);
  }
}

}  // namespace

void set_place_hooks(const PlaceHooks& value) { hooks = value; }
const PlaceHooks& place_hooks() { return hooks; }

std::string SourceLocation::str() const {
  if (file.empty()) return {};
  size_t slash = file.rfind('/');
  return (slash == std::string::npos ? file : file.substr(slash + 1)) + ":" + std::to_string(line);
}

Graph::Graph() = default;
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph other) noexcept {
  std::destroy_at(this);
  return *std::construct_at(this, std::move(other));
}
Graph::~Graph() = default;

// ---- Reading -----------------------------------------------------------------------------------

IntArrayRef Graph::sizes(ValueId id) const {
  const Value& v = values_[id];
  return {dims_.data() + v.dims, static_cast<size_t>(v.ndim)};
}
IntArrayRef Graph::strides(ValueId id) const {
  const Value& v = values_[id];
  return {dims_.data() + v.dims + v.ndim, static_cast<size_t>(v.ndim)};
}
const std::string& Graph::name(ValueId id) const {
  LAMELLA_CHECK(values_[id].kind != ValueKind::kResult, "graph: expected an input, parameter or ",
                "constant to ask for its name, got result %", id);
  return outside_[values_[id].outside].name;
}
const TensorBase& Graph::tensor(ValueId id) const {
  ValueKind kind = values_[id].kind;
  LAMELLA_CHECK(kind == ValueKind::kParameter || kind == ValueKind::kConstant,
                "graph: expected a parameter or constant to ask for its tensor, got %", id);
  return outside_[values_[id].outside].tensor;
}
ArrayRef<Operand> Graph::arguments(const Node& node) const {
  return {operands_.data() + node.operands, node.argument_count};
}
ArrayRef<Operand> Graph::returns(const Node& node) const {
  return {operands_.data() + node.operands + node.argument_count, node.return_count};
}
ArrayRef<ValueId> Graph::tensors(const Operand& operand) const {
  return {ids_.data() + operand.first, operand.count};
}
std::vector<ValueId> Graph::outside(ValueKind kind) const {
  std::vector<ValueId> found;
  for (ValueId id = 0; id < values_.size(); ++id) {
    if (values_[id].kind == kind) found.push_back(id);
  }
  return found;
}
std::vector<ValueId> Graph::used_by(const Node& node) const {
  std::vector<ValueId> found;
  for (const Operand& operand : arguments(node)) {
    for (ValueId id : tensors(operand)) {
      if (id != kNoValue) found.push_back(id);
    }
  }
  return found;
}
std::vector<ValueId> Graph::made_by(const Node& node) const {
  std::vector<ValueId> found;
  for (const Operand& operand : returns(node)) {
    for (ValueId id : tensors(operand)) {
      if (id != kNoValue) found.push_back(id);
    }
  }
  return found;
}
std::vector<ValueId> Graph::written_by(const Node& node) const {
  std::vector<ValueId> found;
  PlanRef<TracingPlan> plan = plan_of(node.op);
  ArrayRef<Operand> all = arguments(node);
  auto add = [&](size_t i) {
    for (ValueId id : tensors(all[i])) {
      if (id != kNoValue) found.push_back(id);
    }
  };
  for (uint16_t i : plan->facts->written) add(i);
  for (uint64_t left = node.also_writes; left != 0; left &= left - 1) {
    add(static_cast<size_t>(__builtin_ctzll(left)));
  }
  return found;
}
SourceLocation Graph::location(const Node& node) const {
  if (node.place == kNoPlace) return {};
  if (store_) return hooks.describe(store_.get(), node.place);
  return node.place < locations_.size() ? locations_[node.place] : SourceLocation();
}
std::vector<ValueId> Graph::mutated() const {
  std::vector<bool> written(values_.size());
  for (const Node& node : nodes_) {
    for (ValueId id : written_by(node)) written[values_[id].root] = true;
  }
  std::vector<ValueId> found;
  for (ValueId id = 0; id < values_.size(); ++id) {
    if (values_[id].kind != ValueKind::kResult && written[values_[id].root]) found.push_back(id);
  }
  return found;
}
bool Graph::is_pure() const {
  for (const Node& node : nodes_) {
    if (!written_by(node).empty()) return false;
  }
  return true;
}

// ---- Making ------------------------------------------------------------------------------------

ValueId Graph::add_value(ValueKind kind, ScalarType dtype, Device device, IntArrayRef sizes,
                         IntArrayRef strides, ValueId root) {
  auto id = static_cast<ValueId>(values_.size());
  auto ndim = static_cast<int32_t>(sizes.size());
  auto dims = static_cast<uint32_t>(dims_.size());
  dims_.insert(dims_.end(), sizes.begin(), sizes.end());
  dims_.insert(dims_.end(), strides.begin(), strides.end());
  values_.push_back({kind, dtype, device, false, ndim, dims, static_cast<uint32_t>(nodes_.size()),
                     static_cast<uint32_t>(outside_.size()), root == kNoValue ? id : root});
  int64_t numel = 1;
  for (int64_t size : sizes) numel *= size;
  if (numel > largest_) largest_ = numel;
  return id;
}
ValueId Graph::add_input(std::string name, const TensorBase& like) {
  const lamella_tensor* t = like.impl();
  ValueId id =
      add_input(std::move(name), like.scalar_type(), device_of(t), sizes_of(t), strides_of(t));
  values_[id].requires_grad = like.requires_grad();
  return id;
}
ValueId Graph::add_input(std::string name, ScalarType dtype, Device device, IntArrayRef sizes,
                         IntArrayRef strides) {
  ValueId id = add_value(ValueKind::kInput, dtype, device, sizes, strides, kNoValue);
  outside_.push_back({std::move(name), TensorBase()});
  inputs_.push_back(id);
  return id;
}
ValueId Graph::add_outside(ValueKind kind, std::string name, TensorBase tensor) {
  const lamella_tensor* t = tensor.impl();
  ValueId id =
      add_value(kind, tensor.scalar_type(), device_of(t), sizes_of(t), strides_of(t), kNoValue);
  values_[id].requires_grad = tensor.requires_grad();
  outside_.push_back({std::move(name), std::move(tensor)});
  return id;
}
void Graph::begin_node(const lamella_operator* op) {
  open_ = {op,
           static_cast<uint32_t>(operands_.size()),
           static_cast<uint16_t>(op->argument_count),
           static_cast<uint16_t>(op->return_count),
           kNoPlace,
           GradMode::kInherit,
           0};
  open_ids_ = static_cast<uint32_t>(ids_.size());
  open_values_ = static_cast<uint32_t>(values_.size());
}
void Graph::add_operand(const lamella_value& value, ArrayRef<ValueId> ids) {
  auto first = static_cast<uint32_t>(ids_.size());
  auto count = static_cast<uint32_t>(ids.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  Operand& operand = operands_.emplace_back();
  operand.first = first;
  operand.count = count;
  if (value.tag == LAMELLA_TENSOR && count != 0) {
    operand.form = Operand::kTensor;
  } else if (value.tag == LAMELLA_TENSOR_LIST) {
    operand.form = Operand::kList;
  } else if (value.tag >= LAMELLA_LIST && value.tag <= LAMELLA_DICT && holds_tensor(value)) {
    operand.form = Operand::kNested;
    operand.value = without_tensors(value);
  } else {
    operand.value = IValue::from_borrowed(value);
  }
}
ValueId Graph::add_result(const TensorBase& like, ValueId root) {
  const lamella_tensor* t = like.impl();
  return add_result(like.scalar_type(), device_of(t), sizes_of(t), strides_of(t), root);
}
ValueId Graph::add_result(ScalarType dtype, Device device, IntArrayRef sizes, IntArrayRef strides,
                          ValueId root) {
  return add_value(ValueKind::kResult, dtype, device, sizes, strides, root);
}
Node Graph::close_node(uint32_t place, GradMode grad_mode, uint64_t also_writes) {
  LAMELLA_CHECK(
      operands_.size() - open_.operands == size_t{open_.argument_count} + open_.return_count,
      "graph: expected ", open_.argument_count + open_.return_count, " arguments and returns for ",
      open_.op->name, ", got ", operands_.size() - open_.operands);
  open_.place = place;
  open_.grad_mode = grad_mode;
  open_.also_writes = also_writes;
  return open_;
}
void Graph::end_node(uint32_t place, GradMode grad_mode, uint64_t also_writes) {
  nodes_.push_back(close_node(place, grad_mode, also_writes));
}
void Graph::abandon_node() {
  operands_.resize(open_.operands);
  ids_.resize(open_ids_);
}
void Graph::set_outputs(std::vector<ValueId> outputs) {
  outputs_ = std::move(outputs);
  std::atomic_store(&plan_.plan, std::shared_ptr<const RunPlan>());
}

// ---- Order and dead code -----------------------------------------------------------------------

Graph Graph::rebuilt(const std::vector<bool>* kept_nodes) const {
  std::vector<bool> used(values_.size());
  auto kept = [&](size_t n) { return kept_nodes == nullptr || (*kept_nodes)[n]; };
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!kept(n)) continue;
    for (ValueId id : used_by(nodes_[n])) used[id] = true;
  }
  for (ValueId id : outputs_) {
    if (id != kNoValue) used[id] = true;
  }
  Graph to;
  to.values_.reserve(values_.size());
  to.nodes_.reserve(nodes_.size());
  to.operands_.reserve(operands_.size());
  to.ids_.reserve(ids_.size());
  to.dims_.reserve(dims_.size());
  std::vector<ValueId> now(values_.size(), kNoValue);
  // If a root was removed, its first remaining value becomes the root of the others.
  std::vector<ValueId> root_now(values_.size(), kNoValue);
  auto carry = [&](ValueId id) {
    const Value& v = values_[id];
    ValueId& root = root_now[v.root];
    now[id] = to.add_value(v.kind, v.dtype, v.device, sizes(id), strides(id), root);
    if (root == kNoValue) root = now[id];
    to.values_[now[id]].requires_grad = v.requires_grad;
    if (v.kind != ValueKind::kResult) to.outside_.push_back(outside_[v.outside]);
  };
  for (ValueId id : inputs_) {
    carry(id);
    to.inputs_.push_back(now[id]);
  }
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kConstant}) {
    for (ValueId id = 0; id < values_.size(); ++id) {
      if (values_[id].kind == kind && used[id]) carry(id);
    }
  }
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!kept(n)) continue;
    const Node& node = nodes_[n];
    for (ValueId id : made_by(node)) {
      if (now[id] == kNoValue) carry(id);
    }
    Node copy = node;
    copy.operands = static_cast<uint32_t>(to.operands_.size());
    for (uint32_t i = 0; i < uint32_t{node.argument_count} + node.return_count; ++i) {
      Operand operand = operands_[node.operands + i];
      auto first = static_cast<uint32_t>(to.ids_.size());
      for (ValueId id : tensors(operand)) to.ids_.push_back(id == kNoValue ? id : now[id]);
      operand.first = first;
      to.operands_.push_back(std::move(operand));
    }
    to.nodes_.push_back(copy);
  }
  for (ValueId id : outputs_) to.outputs_.push_back(id == kNoValue ? id : now[id]);
  to.locations_ = locations_;
  to.store_ = store_;
  return to;
}

Graph Graph::ordered() const { return rebuilt(nullptr); }

Graph Graph::without_dead_code() const {
  std::vector<bool> live(values_.size()), live_root(values_.size());
  auto keep = [&](ValueId id) {
    if (id == kNoValue) return;
    live[id] = true;
    live_root[values_[id].root] = true;
  };
  for (ValueId id : outputs_) keep(id);
  for (ValueId id = 0; id < values_.size(); ++id) {
    if (values_[id].kind != ValueKind::kResult) live_root[values_[id].root] = true;
  }
  // Backwards, so that all readers of a node's results and writes are visited before the node.
  std::vector<bool> kept(nodes_.size());
  for (size_t n = nodes_.size(); n-- > 0;) {
    const Node& node = nodes_[n];
    bool needed = node.return_count == 0 || plan_of(node.op)->acts;
    for (ValueId id : made_by(node)) needed = needed || live[id];
    for (ValueId id : written_by(node)) needed = needed || live_root[values_[id].root];
    if (!needed) continue;
    kept[n] = true;
    for (ValueId id : used_by(node)) keep(id);
  }
  return rebuilt(&kept);
}

}  // namespace lamella::tracing
