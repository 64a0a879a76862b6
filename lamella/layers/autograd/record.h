// The kernel that records every operator. Internal to Lamella.
//
// Note [Recording a call]
//   1. Find the arguments that need gradients. If there are none, redispatch the call below.
//   2. Check the arguments written in place; make a node with edges to the arguments' nodes; save
//      the argument values that the wanted formulas need.
//   3. Redispatch the call below autograd.
//   4. Make fresh results outputs of the node, rebase written arguments, and save the results that
//      the wanted formulas need.
//   5. Compute tangents, if an argument has one: forward.cpp.
//   The details of steps 2 and 4 for an operator are in its plan, made once from its schema and
//   its derivative.
#pragma once
#include "lamella/core/code.h"
#include "lamella/core/ivalue.h"
#include "lamella/core/wrapper.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/operator_entry.h"
#include "lamella/layers/autograd/node.h"
#include "lamella/layers/autograd/saved.h"

namespace lamella::autograd {

// At ADInplaceOrView, for operators that are not Lamella's own. See Note [Foreign views and
// writes].
extern const lamella_kernel kCountWrites;

// Only floating-point and complex tensors have gradients.
inline bool is_differentiable_dtype(const lamella_tensor* t) {
  auto dtype = static_cast<ScalarType>(t->scalar_type);
  return is_floating_point(dtype) || is_complex(dtype);
}

struct ReturnPlan {
  bool is_tensor = false;  // or a list of tensors
  bool is_list = false;
  bool differentiable = false;  // by the operator's derivative
  int written = -1;             // index of the argument written in place that it is; -1: none
  bool is_view = false;         // of some argument that is not written
};
struct SlotPlan {
  uint16_t argument;
  bool is_list;
};
struct RecordPlan : OperatorPlan {
  RecordPlan(const lamella_derivative* derivative, const void* function)
      : derivative(derivative), code(function) {}
  ~RecordPlan() override;
  // Null: there is none, or the plan was dropped.
  mutable std::atomic<const lamella_derivative*> derivative;
  code::Use code;  // the library of its formulas
  const OperatorEntry* op = nullptr;
  // The operator and its derivative are Lamella's own, so the plan is never dropped and its nodes
  // hold no references to it.
  bool stays = false;
  // Plans for the keys that have their own derivative.
  std::vector<std::pair<DispatchKey, const RecordPlan*>> keyed;  // one reference each
  std::string node_name;
  // The node name for calls that leave out argument `without` (-1: none): Note [Names of nodes].
  std::string name_without;
  int without = -1;
  std::string where;  // the operator was registered
  std::vector<SlotPlan> slots;
  std::vector<ReturnPlan> returns;
  std::vector<uint16_t> written;  // arguments that are written
  std::vector<int> slot_of;       // of each argument, -1: none
  std::vector<std::string> argument_names;
  std::vector<std::string> return_names;  // "result" where the schema gives none
  bool has_list_slot = false;
  bool has_out = false;  // writes out arguments
  bool not_differentiable = false;
  bool acts = false;  // tag side_effect: Note [The order of side effects]
  bool saves_arguments = false;
  bool saves_returns = false;
  bool plain = false;  // one fresh tensor returned, nothing written, no lists; whatever
                       // the arguments are
  // No derivative is registered, so what its kernel calls is recorded; see Note [By parts].
  bool by_parts = false;

  // The plan for a call with this key set.
  const RecordPlan* at(uint64_t keys) const {
    return LAMELLA_LIKELY(keyed.empty()) ? this : at_key(keys);
  }
  void retire() const override;

 private:
  const RecordPlan* at_key(uint64_t keys) const;
};

// The boxed kernel that records gradients for any operator.
extern const lamella_kernel kRecord;

// The plan of an operator, inside of a call to it. Throws where it has no schema.
const RecordPlan* plan_of(const lamella_operator* op);

// Bit r: return r (bit 63: and those after it) may require gradients in a call with these
// arguments, provided that its plan says that it is differentiable.
inline uint64_t differentiable_returns(const lamella_derivative* d,
                                       const lamella_value* arguments) {
  uint64_t returns = ~uint64_t{0};
  if (LAMELLA_UNLIKELY(d != nullptr && d->condition != nullptr)) {
    detail::check(d->condition(arguments, &returns));
  }
  return returns;
}
inline bool has_return(uint64_t returns, size_t r) {
  return ((returns >> (r < 63 ? r : 63)) & 1) != 0;
}

// One value that a node keeps.
struct Saved {
  lamella_value value{};  // owned, unless a tensor
  SavedTensor tensor;
  std::unique_ptr<std::vector<SavedTensor>> list;
  Saved() = default;
  Saved(const Saved&) = delete;
  ~Saved() {
    if (value.tag != LAMELLA_NONE) lamella_value_release(&value);
  }
};

class RecordNode final : public Node {
 public:
  static RecordNode* make(const RecordPlan* plan, const lamella_derivative* derivative,
                          uint32_t edges);

  lamella_status apply(lamella_tensor* const* grads, lamella_tensor** results,
                       WantedEdges wanted) override;
  std::string name() const override { return is_without_ ? plan_->name_without : plan_->node_name; }
  void release_saved() noexcept override;
  bool keeps_something() const noexcept override;
  std::vector<std::string> saved_names() const override;
  std::vector<SavedTensor*> saved_tensors(const char* name, bool* is_list) override;

  // Keeps what the formulas of wanted slots need of the arguments, or of the returns.
  void save(const lamella_value* values, bool returns);
  // Gives saved returns the tangents that the returns have.
  void save_tangents(const lamella_value* returns);
  void set_needs(uint64_t needs) { needs_ = needs; }
  void follow_side_effects() { place_.take(*this); }
  uint32_t* first() { return first_; }
  const RecordPlan* plan() const { return plan_; }

 protected:
  lamella_status find_saved(const char* name, lamella_value* value, bool* found) override;
  void deallocate() noexcept override;

 private:
  RecordNode(const RecordPlan* plan, const lamella_derivative* derivative, Edge* edges,
             uint32_t count)
      : Node(edges, count), plan_(plan), derivative_(derivative) {
    if (LAMELLA_UNLIKELY(!plan->stays)) plan->retain();
  }
  ~RecordNode() override;
  lamella_status run_formula(lamella_tensor* const* grads, lamella_tensor** results,
                             WantedEdges wanted);

  const RecordPlan* plan_;
  const lamella_derivative* derivative_;
  Saved* saved_ = nullptr;
  uint32_t* first_ = nullptr;  // slot_count + 1 entries
  uint64_t needs_ = 0;
  uint32_t bytes_ = 0;
  uint32_t saved_count_ = 0;
  bool released_ = false;
  bool is_without_ = false;  // the call left out the argument RecordPlan::without
  SideEffectPlace place_;
};

// Saves the part of a value that `what`, a LAMELLA_SAVE_* constant, selects.
void keep(const lamella_value& value, uint8_t what, int output, Saved* saved);
// Step 5. `originals`: the arguments as they were before the call.
lamella_status propagate_tangents(const RecordPlan* plan, const lamella_operator* op,
                                  const lamella_value* originals, const lamella_value* arguments,
                                  lamella_value* returns);
bool has_tangent(const RecordPlan* plan, const lamella_value* arguments);
// Zeros of the tensor's shape, laid out as it is, with memory of their own for each example of the
// levels, which come highest first.
TensorBase zeros_over(const lamella_tensor* t, const BatchLevels& levels);
// Forgets the views that are recorded until their base gets a tangent.
void forget_views();
// The hook of core/dual_hook.h.
TensorBase expose_with_tangent(const TensorBase& t, const std::pair<uint32_t, int64_t>& level);

// Registers the kernel and the hooks of tensors; further calls do nothing.
LAMELLA_PRIVATE_API void register_layer();
void register_tensor_hooks();

}  // namespace lamella::autograd
