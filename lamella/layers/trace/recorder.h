// Records what a thread's calls do as a Graph.
//
// Note [Recording a trace]
//   While a trace runs, its thread includes the keys Tracer and TracerBelowAutograd in every call.
//   Both have one boxed fallback for all operators, registered when the first trace starts.
//   The kernel of Tracer, above autograd, records a call as one node and lets the operator run with
//   both keys taken away, so that what its kernel calls is not recorded. Only where autograd's own
//   kernel comes next does it leave the recording to the kernel of TracerBelowAutograd: what
//   autograd calls for itself (copies of what will be overwritten, tangents) is then recorded
//   beside the operator, in the right order. With `decompose`, operators whose kernel is
//   CompositeImplicitAutograd are not recorded; what they call is.
//
// Note [Groups]
//   A composite operator on tensors that require gradients saves for its backward what its parts
//   made, and so does an operator with an autograd kernel of its own. If the trace goes on to
//   record that backward, these values are needed. So the parts are recorded as well, as a group;
//   when the trace ends, each group becomes one node, unless something outside of it uses what only
//   its parts make. Then the parts stay; an autograd kernel that went on below autograd by itself
//   made its results without parts, and its node stays behind them.
//
// Note [Which value a tensor is]
//   Tensors are known by identity; the trace keeps all of them alive. A tensor that no recorded
//   call has made may be another object for the memory of one that is known (autograd unpacks what
//   it saved so): with the same geometry it is the same value, with another one the node
//   as_strided gives it. One whose memory is unknown comes from outside: a parameter if it requires
//   gradients or was named as one, else a constant. Memory without contents yet that the library
//   makes for itself shows first as something to be filled, without a Python object: it is made by
//   empty_strided.
//
// Note [Memory of a trace]
//   The trace needs the headers of tensors, which tell values apart, and not their elements. So
//   memory that only the trace refers to is freed while it runs, each time that new memory amounts
//   to a quarter of the memory in use.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "lamella/dispatch/dispatch_key.h"
#include "lamella/layers/trace/graph.h"
#include "lamella/layers/trace/operators.h"

namespace lamella::tracing {

struct TraceOptions {
  bool decompose = false;
  bool strict = false;    // reading an element raises an error instead of a note
  bool locations = true;  // nodes know where they were called, if the language above does
};

// An element of a traced tensor was read, or its memory handed out, outside of operators.
struct Escape {
  std::string what;  // "bool()"
  SourceLocation where;
};

// One trace of this thread: from start() to finish(). Throws if another is running.
class LAMELLA_PRIVATE_API Recorder {
 public:
  explicit Recorder(TraceOptions options = {});
  ~Recorder();  // ends the trace
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Before start().
  void add_input(std::string name, const TensorBase& tensor);
  // What a tensor from outside is to be called, and what it is, if it turns up.
  void name_outside(ValueKind kind, std::string name, const TensorBase& tensor);

  void start();  // on the thread that calls it
  void stop();   // on the same thread; again is harmless
  // The graph, with values in order. Once, after stop().
  Graph finish(ArrayRef<TensorBase> outputs);

  const std::vector<Escape>& escapes() const { return escapes_; }
  // The tensors from outside that recorded calls have used so far.
  std::vector<TensorBase> outside() const;

  // The trace that runs on this thread, or null.
  static Recorder* current();

  // For the kernels.
  lamella_status record(const lamella_operator* op, uint64_t keys, const lamella_value* arguments,
                        lamella_value* returns);
  lamella_status record_group(const lamella_operator* op, uint64_t keys,
                              const lamella_value* arguments, lamella_value* returns);
  bool is_decomposed(const lamella_operator* op, uint64_t keys) const;
  // To be called where code reads elements outside of operators; throws if strict.
  void note_read(lamella_tensor* tensor, const char* what);
  // A tensor made without an operator becomes a copy of a constant, so that each run has its own.
  void note_made(const TensorBase& tensor);

 private:
  struct Known {
    const lamella_tensor* tensor = nullptr;
    const lamella_storage* storage = nullptr;
    ValueId id = kNoValue;
  };
  // Nodes first_node up to end_node are the parts of `node`; groups from first_group on up to this
  // one are groups among them.
  struct Group {
    Node node;
    uint32_t first_node, end_node;
    ValueId first_value, end_value;
    uint32_t first_group;
    bool needed;  // it makes values that no part makes
  };
  struct Named {
    ValueKind kind;
    std::string name;
  };
  const Known* find(const lamella_tensor* tensor) const;
  void know(lamella_tensor* tensor, ValueId id);
  ValueId root_of(const lamella_tensor* tensor) const;
  bool is_number(const lamella_value& value) const;
  ValueId value_of(lamella_tensor* tensor, bool filled);
  ValueId alias_of(lamella_tensor* tensor);
  ValueId add_made_node(const char* name, std::initializer_list<lamella_value> arguments,
                        ValueId of, lamella_tensor* tensor);
  ValueId add_empty(lamella_tensor* tensor);
  ValueId add_from_outside(lamella_tensor* tensor);
  ValueId add_result(lamella_tensor* tensor, bool depends);
  void keep(ValueId id, lamella_tensor* tensor, bool depends, bool known = true);
  bool read_arguments(const lamella_operator* op, const TracingPlan& plan,
                      const lamella_value* arguments);
  void add_arguments(const lamella_operator* op, const lamella_value* arguments,
                     ArrayRef<ValueId> ids);
  void mark_written(const TracingPlan& plan, const lamella_value* arguments);
  void fold_groups();
  void release_unreadable();
  bool depends(ValueId id) const;
  uint32_t place();
  GradMode grad_mode() const;
  static bool grad_enabled();

  TraceOptions options_;
  Graph graph_;
  std::vector<TensorBase> tensors_;  // of each value
  std::vector<bool> depends_;        // on inputs, parameters or random numbers, by value
  std::vector<Known> known_;         // by address, with open addressing; no entry leaves
  size_t known_count_ = 0;
  std::unordered_map<const lamella_storage*, ValueId> memory_;  // the last value over each
  std::vector<ValueId> previous_;  // value over the same memory before this one, by value
  std::unordered_map<const lamella_tensor*, Named> named_;
  std::vector<TensorBase> named_tensors_;
  std::vector<Escape> escapes_;
  std::vector<ValueId> ids_;   // scratch
  size_t fresh_bytes_ = 0;     // made by calls since memory was last released
  size_t readable_bytes_ = 0;  // of what they made, not released then
  std::vector<Group> groups_;
  uint32_t depth_ = 0;  // of groups under way
  ObjectRef<> store_;
  uint32_t constants_ = 0;
  uint32_t parameters_ = 0;
  bool grad_at_start_ = true;
};

inline constexpr uint64_t kTracingBits =
    lamella::detail::functionality_bit(lamella::detail::Functionality::Tracer) |
    lamella::detail::functionality_bit(lamella::detail::Functionality::TracerBelowAutograd);

// Whether calls of this thread are recorded now.
inline bool is_tracing() { return (lamella_thread.included & kTracingBits) != 0; }

// Calls of this thread are not recorded for as long as it lives.
class Pause {
 public:
  Pause() : taken_(lamella_thread.included & kTracingBits) {
    lamella_thread.included &= ~kTracingBits;
  }
  ~Pause() { lamella_thread.included |= taken_; }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  uint64_t taken_;
};

}  // namespace lamella::tracing
