// The values that functional wrappers stand for. Internal to the layer: Note [Programs without
// writes].
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lamella/api/functions.h"
#include "lamella/core/ivalue.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/dispatch_key.h"
#include "lamella/layers/functionalize/functionalize.h"

namespace lamella::functionalize {

constexpr uint64_t kBit =
    lamella::detail::functionality_bit(lamella::detail::Functionality::Functionalize);

using Values = std::vector<IValue>;
// Calls an operator with the keys of its arguments and of the thread.
Values call(const lamella_operator* op, const Values& arguments);

// Shape, strides, offset (in elements) and dtype of a tensor.
struct Geometry {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  ScalarType dtype = ScalarType::Undefined;
  Geometry() = default;
  explicit Geometry(const lamella_tensor* t);
  // Elements from the first to the last.
  int64_t span() const;
  bool operator==(const Geometry&) const = default;
};

// A step from a tensor to a view of it.
struct View {
  std::shared_ptr<const View> parent;  // null: of the whole
  const lamella_operator* op = nullptr;
  Values arguments;
  size_t self = 0;  // which argument is viewed
  int index = -1;   // the entry of a result list; -1: the result is not a list
  Geometry from, to;
};
using Chain = std::shared_ptr<const View>;

struct Alias {
  lamella_tensor* wrapper = nullptr;
  WeakTensorRef alive;  // the wrapper
  Geometry geometry;    // of the wrapper when it was recorded
  Chain view;
  Tensor value;             // undefined: not computed yet
  uint64_t generation = 0;  // of Shared when `value` was computed
};
struct Pending {
  Chain view;
  Tensor value;
};

// The state that all wrappers over one storage share.
struct Shared {
  Tensor base;        // the value of the whole storage, without pending writes
  Geometry geometry;  // of the wrapper that stands for the whole
  std::vector<Pending> pending;
  uint64_t generation = 0;  // writes so far
  bool captured = false;    // wraps a tensor that is not an argument: must not be written
  bool frozen = false;      // freeze() was called: must not be written
  bool ambiguous = false;   // argument sharing memory with another wrapper: must not be written
  bool resized = false;     // replaces the storage of an argument that was enlarged
  uint64_t session = 0;
  std::vector<Alias> aliases;  // TensorImpl::reserved - 1 is the index
  size_t sweep_at = 64;
};

// An argument of the function.
struct Input {
  Tensor tensor;
  Tensor wrapper;  // the function may change its sizes, strides and storage
  Tensor origin;   // an alias of the wrapper with its original sizes, strides and storage
  Tensor whole;    // the tensor that Shared::base was at first
};

// How views are computed.
struct ViewRule {
  bool copies = false;   // by the *_copy forms
  bool exact = false;    // by the very operators of the program: Note [Loose sessions]
  bool checked = false;  // strides of copies that differ from those of views are errors
};

struct Session {
  uint64_t id = 0;
  ViewRule views;
  uint64_t included = 0, excluded = 0;  // of the thread when it was opened
  Session* outer = nullptr;
  std::vector<Input> arguments;
};

// Switches to the level below for its lifetime: Note [Above and below].
class Below {
 public:
  explicit Below(Session* session);
  ~Below();
  Below(const Below&) = delete;
  Below& operator=(const Below&) = delete;

 private:
  Session* session_;
  uint64_t included_, excluded_;
};

// Registers the kernel of the layer's key, once.
void register_layer();
// The session of this thread; throws where none is open.
Session& session_for(const char* op);

// A new wrapper of `value` that shares its storage with no other wrapper.
Tensor wrap_value(Session& session, const Tensor& value, bool keep_offset = false);
// Throws for a wrapper of a session that has ended.
Shared& shared_of(const lamella_tensor* wrapper);
Alias& alias_of(lamella_tensor* wrapper);
// Records the chain of views that leads to a wrapper, unless it is already recorded.
void note_view(lamella_tensor* wrapper, Chain view);
// An as_strided view of the whole with the wrapper's geometry.
Chain strided_chain(const Shared& shared, const Geometry& to);

// The current value of a wrapper; any other tensor is returned as it is.
Tensor value_of(lamella_tensor* tensor);
// Applies all pending writes to the value of the whole.
void flush(Session& session, Shared& shared);
// Gives a wrapper a new value of the same shape and dtype.
void set_value(lamella_tensor* wrapper, const Tensor& value);
// Throws if a tensor must not be written. `op` and `argument` begin the message.
void check_writable(const char* op, const char* argument, const lamella_tensor* tensor);
// Gives the wrapper of a view its first value, and the value's layout, on which later views depend.
void show_value(const Session& session, lamella_tensor* wrapper, const Tensor& value);
// Whether another tensor shares the wrapper's storage.
bool has_aliases(const lamella_tensor* wrapper);
// Sets the strides of a wrapper that stands for the whole storage and has no views.
void set_layout(lamella_tensor* wrapper, IntArrayRef strides);
// Gives the wrapper a storage of its own for a value of any shape.
void replace(Session& session, lamella_tensor* wrapper, const Tensor& value);

// ---- views.cpp. Call these while a Below exists. ----

// Applies a chain of views to the value of the whole, or one step to its parent's.
Tensor replay(const Tensor& whole, const Chain& view, ViewRule rule);
Values replay_step(const View& view, const Tensor& parent, ViewRule rule);
// The whole with the elements of a view replaced by a new value.
Tensor write_back(const Tensor& whole, const Chain& view, const Tensor& value, ViewRule rule);

}  // namespace lamella::functionalize
