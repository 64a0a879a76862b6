// Records what a thread's calls do as a Graph.
//
// Note [Recording a trace]
//   While a trace runs, its thread includes the keys Tracer and TracerBelowAutograd in every call.
//   Both have one boxed fallback for all operators, registered when the first trace starts.
//   The kernel of Tracer, above autograd, records a call as one node and runs the operator with
//   both keys removed, so that calls made by its kernel are not recorded. Only if autograd's own
//   kernel is next does it leave the recording to the kernel of TracerBelowAutograd: autograd's own
//   calls (copies of tensors that will be overwritten, tangents) are then recorded beside the
//   operator, in the right order. With `decompose`, operators whose kernel is
//   CompositeImplicitAutograd are not recorded; the operators that they call are.
//
// Note [Groups]
//   The parts of a composite operator are the operators that it calls. On tensors that require
//   gradients their results are saved for backward, as they are by an operator with an autograd
//   kernel of its own. A trace that also records that backward needs these values, so the parts are
//   recorded as a group. When the trace ends, each group becomes one node, unless a node outside
//   of it uses a value that only a part makes. Then the parts stay, followed by the operator's own
//   node if some result was made by no recorded part.
//
// Note [Which value a tensor is]
//   Tensors are identified by address; the trace keeps all of them alive. A tensor that no recorded
//   call has made may be another object over the memory of a known one (as autograd unpacks saved
//   tensors). With the same geometry it is the same value; otherwise a node as_strided makes it. A
//   tensor over unknown memory comes from outside: it is a parameter if it requires gradients or
//   was named as one, else a constant. The exception are uninitialised tensors that the library
//   allocates internally: a tensor without a Python object whose first use is to be overwritten is
//   made by a node empty_strided.
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
  bool locations = true;  // nodes keep the source location of the call, if place hooks are set
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
  // The kind and name of a tensor from outside, in case a recorded call uses it.
  void name_outside(ValueKind kind, std::string name, const TensorBase& tensor);

  void start();  // on the thread that calls it
  void stop();   // on the same thread; may be called again
  // The graph, with values in order. Stops the trace; to be called once.
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
  // To be called by code that reads elements outside of operators; throws if strict.
  void note_read(lamella_tensor* tensor, const char* what);
  // A tensor made without an operator becomes a copy of a constant, so that each run has its own.
  void note_made(const TensorBase& tensor);

 private:
  struct Known {
    const lamella_tensor* tensor = nullptr;
    const lamella_storage* storage = nullptr;
    ValueId id = kNoValue;
  };
  // The nodes [first_node, end_node) are the parts of `node`; the groups from first_group up to
  // this one are nested in it.
  struct Group {
    Node node;
    uint32_t first_node, end_node;
    ValueId first_value, end_value;
    uint32_t first_group;
    bool needed;  // `node` returns tensors that no part makes
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
  std::vector<TensorBase> tensors_;  // by value
  std::vector<bool> depends_;        // by value: on inputs, parameters, random numbers, effects
  std::vector<Known> known_;         // by address, with open addressing; entries are never removed
  size_t known_count_ = 0;
  std::unordered_map<const lamella_storage*, ValueId> memory_;  // the last value over each
  std::vector<ValueId> previous_;  // by value: the value before it over the same memory
  std::unordered_map<const lamella_tensor*, Named> named_;
  std::vector<TensorBase> named_tensors_;
  std::vector<Escape> escapes_;
  std::vector<ValueId> ids_;   // scratch
  size_t fresh_bytes_ = 0;     // of new memory since memory was last released
  size_t readable_bytes_ = 0;  // of the trace's memory that could not be released then
  std::vector<Group> groups_;
  uint32_t depth_ = 0;  // of the groups being recorded
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

// Stops recording the calls of this thread for its lifetime.
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
