// Graph: the operators that a function called, in order. Graphs can be walked, run, printed,
// compared and built by hand.
//
// Note [What a graph says]
//   Values are tensors and have numbers: inputs first, then parameters, constants, and the results
//   of nodes. Each value is defined once. A node is one call of an operator. An operator that
//   returns its argument, as in-place operators do, defines a new value for the same tensor;
//   `root` is the first value over the same memory. A node that writes memory changes all values
//   of that root, so nodes around writes must keep their order. A graph without writes is pure:
//   its nodes may take any order in which definitions come before uses.
//   Parameters are tensors from outside that are trained or belong to a module's state; constants
//   are all others. Sizes, strides, dtypes and devices are those of the call that was recorded.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/array_ref.h"
#include "lamella/core/device.h"
#include "lamella/core/ivalue.h"
#include "lamella/core/macros.h"
#include "lamella/core/object_ref.h"
#include "lamella/core/tensor_base.h"

namespace lamella::tracing {

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = ~ValueId{0};  // an undefined tensor

enum class ValueKind : uint8_t { kInput, kParameter, kConstant, kResult };

struct Value {
  ValueKind kind;
  ScalarType dtype;
  Device device;
  bool requires_grad;
  int32_t ndim;
  uint32_t dims;     // place of sizes and strides: Graph::sizes(), Graph::strides()
  uint32_t node;     // of a result: the node that makes it
  uint32_t outside;  // of a parameter or constant: its place in tensors(); of an input: its number
  ValueId root;      // the first value over the same memory; the value itself if it is that
};

// One argument or return of a node. `value` holds an undefined tensor in place of each tensor;
// Graph::tensors() gives their values of the graph, in order.
struct Operand {
  enum Form : uint8_t {
    kPlain,   // holds no value of the graph. A tensor in `value` stands for a Python number
    kTensor,  // one tensor
    kList,    // a list of tensors; `value` is NONE
    kNested,  // lists, tuples or dictionaries with tensors in them
  };
  IValue value;
  uint32_t first = 0;
  uint32_t count = 0;
  Form form = kPlain;
};

// Grad mode of a node's call, if it differs from that of the run.
enum class GradMode : uint8_t { kInherit, kOff, kOn };

struct Node {
  const lamella_operator* op;
  uint32_t operands;  // place of the first argument; returns follow
  uint16_t argument_count;
  uint16_t return_count;
  uint32_t place;  // source location: Graph::location()
  GradMode grad_mode;
  uint64_t also_writes;  // bit i: argument i was written, although the schema does not say so
};

struct LAMELLA_PRIVATE_API SourceLocation {
  std::string file;  // empty: not known
  int line = 0;
  std::string str() const;  // "file.py:12", without folders; empty if not known
};

// Source locations of calls, provided by the language binding. A store is an object of the binding
// that keeps locations by number.
struct PlaceHooks {
  lamella_object* (*make_store)() = nullptr;  // owned
  uint32_t (*capture)(lamella_object* store) = nullptr;
  SourceLocation (*describe)(lamella_object* store, uint32_t place) = nullptr;
};
LAMELLA_PRIVATE_API void set_place_hooks(const PlaceHooks& hooks);
const PlaceHooks& place_hooks();
inline constexpr uint32_t kNoPlace = ~uint32_t{0};

class LAMELLA_PRIVATE_API Graph {
 public:
  Graph();
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph) noexcept;
  ~Graph();

  // ---- Reading ----

  ArrayRef<Value> values() const { return values_; }
  ArrayRef<Node> nodes() const { return nodes_; }
  ArrayRef<ValueId> inputs() const { return inputs_; }
  ArrayRef<ValueId> outputs() const { return outputs_; }
  std::vector<ValueId> parameters() const { return outside(ValueKind::kParameter); }
  std::vector<ValueId> constants() const { return outside(ValueKind::kConstant); }
  const Value& value(ValueId id) const { return values_[id]; }
  IntArrayRef sizes(ValueId id) const;
  IntArrayRef strides(ValueId id) const;
  // The name of an input, parameter or constant: a parameter's qualified name, say.
  const std::string& name(ValueId id) const;
  // The tensor of a parameter or constant.
  const TensorBase& tensor(ValueId id) const;
  ArrayRef<Operand> arguments(const Node& node) const;
  ArrayRef<Operand> returns(const Node& node) const;
  ArrayRef<ValueId> tensors(const Operand& operand) const;
  // Values that the node uses and defines, without undefined ones.
  std::vector<ValueId> used_by(const Node& node) const;
  std::vector<ValueId> made_by(const Node& node) const;
  // Values whose memory the node writes, by the operator's schema or as observed by the trace.
  std::vector<ValueId> written_by(const Node& node) const;
  SourceLocation location(const Node& node) const;
  // Inputs, parameters and constants whose memory some node writes.
  std::vector<ValueId> mutated() const;
  bool is_pure() const;

  // "%3: float32[2, 3] = aten::add.Tensor(%1, %2, alpha=1)  # file.py:12", one line for each input,
  // parameter, constant and node, and one for the outputs.
  std::string str() const;
  std::string node_text(const Node& node) const;  // without the location
  // "float32[2, 3]", with the device unless that is the CPU.
  std::string type_text(ValueId id) const;

  // ---- Running ----

  // Calls the operators in order. Inputs must have the recorded shapes, dtypes and devices. Values
  // are released after their last use. Errors name the node that failed.
  std::vector<TensorBase> run(ArrayRef<TensorBase> inputs) const;
  // The number of elements of the largest value, as a measure of the work of a run.
  int64_t largest() const { return largest_; }

  // ---- Comparing ----

  // The first difference in one sentence, empty if there is none. Compares operators, arguments,
  // uses of values, outputs and writes; with `contents`, also shapes and the elements of parameters
  // and constants. Source locations are ignored.
  std::string difference(const Graph& other, bool contents) const;

  // ---- Making ----

  ValueId add_input(std::string name, const TensorBase& like);
  ValueId add_input(std::string name, ScalarType dtype, Device device, IntArrayRef sizes,
                    IntArrayRef strides);
  ValueId add_outside(ValueKind kind, std::string name, TensorBase tensor);
  // Begins a node. Its arguments are added next, then its returns; end_node() completes it.
  void begin_node(const lamella_operator* op);
  // `ids` are the values of the tensors in `value`, in order. A tensor that stands for a Python
  // number has none: it is part of the node.
  void add_operand(const lamella_value& value, ArrayRef<ValueId> ids);
  // A value that the begun node defines, to be used in one of its returns.
  ValueId add_result(const TensorBase& like, ValueId root);
  ValueId add_result(ScalarType dtype, Device device, IntArrayRef sizes, IntArrayRef strides,
                     ValueId root);
  void end_node(uint32_t place, GradMode grad_mode, uint64_t also_writes = 0);
  // Completes the begun node without appending it to nodes(), for set_nodes().
  Node close_node(uint32_t place, GradMode grad_mode, uint64_t also_writes);
  void set_nodes(std::vector<Node> nodes) { nodes_ = std::move(nodes); }
  void abandon_node();
  void set_requires_grad(ValueId id, bool value) { values_[id].requires_grad = value; }
  // `root` must be a value over the same memory.
  void set_root(ValueId id, ValueId root) { values_[id].root = root; }
  void set_outputs(std::vector<ValueId> outputs);
  // The locations by number, for a graph that was not recorded; or the store that holds them.
  void set_locations(std::vector<SourceLocation> locations) { locations_ = std::move(locations); }
  void set_store(ObjectRef<> store) { store_ = std::move(store); }

  // The graph with values numbered in the order of Note [What a graph says], without unused
  // parameters and constants.
  Graph ordered() const;
  // The graph without dead code. Keeps nodes that the outputs need, nodes that write inputs,
  // parameters, constants or memory that is read later, and operators that return nothing or have
  // side effects.
  Graph without_dead_code() const;

 private:
  struct Outside {
    std::string name;
    TensorBase tensor;  // undefined for inputs
  };
  struct RunPlan;
  // The plan of run(), made by the first run and shared by all threads; copies make their own.
  struct PlanCache {
    std::shared_ptr<const RunPlan> plan;  // atomic
    PlanCache() = default;
    PlanCache(const PlanCache&) noexcept {}
    PlanCache& operator=(const PlanCache&) = delete;
  };

  std::vector<ValueId> outside(ValueKind kind) const;
  ValueId add_value(ValueKind kind, ScalarType dtype, Device device, IntArrayRef sizes,
                    IntArrayRef strides, ValueId root);
  Graph rebuilt(const std::vector<bool>* kept_nodes) const;
  const RunPlan& plan() const;
  void check_input(size_t i, const TensorBase& input) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<Operand> operands_;
  std::vector<ValueId> ids_;
  std::vector<int64_t> dims_;
  std::vector<Outside> outside_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<SourceLocation> locations_;
  ObjectRef<> store_;
  int64_t largest_ = 0;
  Node open_{};  // the begun node
  uint32_t open_ids_ = 0;
  uint32_t open_values_ = 0;
  mutable PlanCache plan_;
};

// Calls f(tensor) for each tensor in a value, in order, undefined ones included.
template <class F>
void each_tensor_of(const lamella_value& value, F&& f) {
  switch (value.tag) {
    case LAMELLA_TENSOR:
      f(value.as.tensor);
      break;
    case LAMELLA_TENSOR_LIST:
      for (uint32_t i = 0; i < value.size; ++i) {
        f(static_cast<lamella_tensor* const*>(value.as.pointer)[i]);
      }
      break;
    case LAMELLA_LIST:
    case LAMELLA_TUPLE:
    case LAMELLA_DICT:
      for (uint32_t i = 0; i < value.size; ++i) {
        each_tensor_of(static_cast<const lamella_value*>(value.as.pointer)[i], f);
      }
      break;
    default:
      break;
  }
}

}  // namespace lamella::tracing
