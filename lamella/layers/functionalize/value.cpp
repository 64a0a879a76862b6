// Functional wrappers and the values that they stand for.
#include "lamella/layers/functionalize/value.h"

#include <algorithm>
#include <atomic>

#include "lamella/abi/autograd.h"
#include "lamella/core/error.h"
#include "lamella/core/version_counter.h"

namespace lamella::functionalize {
namespace {

// A plain pointer, for the library's thread-local block has no room for destructors.
thread_local Session* open = nullptr;
thread_local Session* loose = nullptr;

constexpr uint64_t kLooseId = 1;  // of all threads, which may share wrappers

constexpr uint64_t functionality(lamella::detail::Functionality f) {
  return lamella::detail::functionality_bit(f);
}
constexpr uint64_t kAutocast = functionality(lamella::detail::Functionality::AutocastFunctionality);
// Layers around the session that must see the pure program, not the wrappers. A trace has two keys.
constexpr uint64_t kAround = functionality(lamella::detail::Functionality::Tracer) |
                             functionality(lamella::detail::Functionality::TracerBelowAutograd) |
                             functionality(lamella::detail::Functionality::VmapMode);
// Keys below this layer, which keep the function's own settings.
constexpr uint64_t kUnder =
    DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::Functionalize).raw_repr() &
    ~lamella::detail::kBackendMask;

constexpr uint64_t kLazy = functionality(lamella::detail::Functionality::Conjugate) |
                           functionality(lamella::detail::Functionality::Negative);
// Keys above this layer except those of lazy values, which the level below resolves.
constexpr uint64_t kAbove = ~(kUnder | lamella::detail::kBackendMask | kLazy);

void drop_shared(void* context) { delete static_cast<Shared*>(context); }

uint64_t fresh_id() {
  static std::atomic<uint64_t> last{kLooseId};
  return ++last;
}

// The index of an unused entry of `aliases`; entries whose wrapper is gone are reused.
uint32_t free_place(Shared& shared) {
  if (shared.aliases.size() >= shared.sweep_at) {
    size_t alive = 0;
    for (Alias& alias : shared.aliases) {
      if (alias.wrapper != nullptr && alias.alive.expired()) alias = Alias();
      alive += alias.wrapper != nullptr;
    }
    shared.sweep_at = std::max<size_t>(64, 2 * alive);
    for (size_t i = 0; i < shared.aliases.size(); ++i) {
      if (shared.aliases[i].wrapper == nullptr) return static_cast<uint32_t>(i);
    }
  }
  shared.aliases.emplace_back();
  return static_cast<uint32_t>(shared.aliases.size() - 1);
}

Alias& note(Shared& shared, lamella_tensor* wrapper, Chain view) {
  uint32_t place = free_place(shared);
  Alias& alias = shared.aliases[place];
  alias.wrapper = wrapper;
  alias.alive = WeakTensorRef(TensorBase::borrow(wrapper));
  alias.geometry = Geometry(wrapper);
  alias.view = std::move(view);
  wrapper->reserved = place + 1;
  wrapper->flags |= LAMELLA_TENSOR_WRAPPER;
  return alias;
}

}  // namespace

Values call(const lamella_operator* op, const Values& arguments) {
  std::vector<lamella_value> in(arguments.size()), out(op->return_count);
  for (size_t i = 0; i < in.size(); ++i) in[i] = arguments[i].value();
  lamella::detail::check(lamella_call_boxed(op, in.data(), static_cast<uint32_t>(in.size()),
                                            out.data(), static_cast<uint32_t>(out.size())));
  Values results;
  for (const lamella_value& value : out) results.push_back(IValue::adopt(value));
  return results;
}

Geometry::Geometry(const lamella_tensor* t)
    : sizes(t->sizes, t->sizes + t->ndim),
      strides(t->strides, t->strides + t->ndim),
      offset(t->storage_offset),
      dtype(static_cast<ScalarType>(t->scalar_type)) {}

int64_t Geometry::span() const {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

// ---- Sessions ----

Below::Below(Session* session)
    : session_(open), included_(lamella_thread.included), excluded_(lamella_thread.excluded) {
  open = nullptr;
  if (session == loose) {
    lamella_thread.included &= ~kBit;
    lamella_thread.excluded |= kAbove;
    return;
  }
  lamella_thread.included = (session->included & ~kUnder) | (included_ & kUnder);
  lamella_thread.excluded = (session->excluded & ~kUnder) | (excluded_ & kUnder) | kAutocast;
  // Applies the current grad modes to the keys that the session began with.
  lamella_set_modes(0, 0);
}
Below::~Below() {
  lamella_thread.included = included_;
  lamella_thread.excluded = excluded_;
  open = session_;
}

Session* current() { return open; }

Session& session_for(const char* op) {
  if (open == nullptr && loose != nullptr) return *loose;
  LAMELLA_CHECK(open != nullptr, op,
                ": expected tensors outside of functionalize(), got one that was made in it and "
                "kept beyond its end");
  return *open;
}

bool set_copies(Session* session, bool copies) {
  return std::exchange(session->views.copies, copies);
}

// Opens the session itself; begin() in kernel.cpp registers the kernel first.
Session* open_session(bool copies) {
  auto* session = new Session;
  session->id = fresh_id();
  session->views.copies = copies;
  session->included = lamella_thread.included;
  session->excluded = lamella_thread.excluded;
  session->outer = open;
  open = session;
  lamella_thread.included = (session->included & ~kAround) | kBit;
  return session;
}

// ---- The loose session ----

namespace {
Session& loose_session() {
  if (loose == nullptr) {
    register_layer();
    loose = new Session;
    loose->id = kLooseId;
    loose->views.exact = true;
  }
  return *loose;
}
}  // namespace

TensorBase wrap_loose(const TensorBase& tensor) {
  return wrap_value(loose_session(), Tensor(tensor), true);
}

void set_loose(bool on, bool copies, bool checked) {
  if (on) loose_session().views = {copies, true, checked};
  lamella_thread.included = on ? lamella_thread.included | kBit : lamella_thread.included & ~kBit;
}

TensorBase loose_value(const TensorBase& wrapper, bool synced) {
  const Alias& alias = alias_of(wrapper.impl());
  return !synced && alias.value.defined() ? alias.value : value_of(wrapper.impl());
}

void freeze(const TensorBase& wrapper) { shared_of(wrapper.impl()).frozen = true; }

void end(Session* session) noexcept {
  lamella_thread.included = session->included;
  lamella_thread.excluded = session->excluded;
  lamella_set_modes(0, 0);
  open = session->outer;
  delete session;
}

// ---- Wrappers ----

bool is_functional(const lamella_tensor* t) {
  return t != nullptr && (t->key_set & kBit) != 0 && t->storage != nullptr &&
         t->storage->deleter == &drop_shared;
}

Shared& shared_of(const lamella_tensor* wrapper) {
  auto& shared = *static_cast<Shared*>(wrapper->storage->context);
  const Session* session = open != nullptr ? open : loose;
  LAMELLA_CHECK(session != nullptr && shared.session == session->id,
                "functionalize: expected a tensor of the function that runs, got one that was "
                "made in another call and kept beyond its end");
  return shared;
}

Tensor wrap_value(Session& session, const Tensor& value, bool keep_offset) {
  Geometry geometry(value.impl());
  if (!keep_offset) geometry.offset = 0;
  auto* shared = new Shared;
  shared->base = value;
  shared->geometry = geometry;
  shared->session = session.id;
  size_t bytes = static_cast<size_t>(geometry.offset + geometry.span()) * value.itemsize();
  Storage* storage = nullptr;
  try {
    storage = make_foreign_storage(nullptr, bytes, value.device(), &drop_shared, shared);
  } catch (...) {
    delete shared;
    throw;
  }
  // make_tensor takes the only reference, even if it throws; the storage then deletes `shared`.
  TensorBase made = make_tensor(storage, geometry.sizes, geometry.strides, geometry.offset,
                                geometry.dtype, default_key_set(value.device().type()) | kBit);
  made.impl()->flags |= value.impl()->flags & (LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG);
  made.impl()->key_set |= value.impl()->key_set & kLazy;
  Alias& alias = note(*shared, made.impl(), nullptr);
  alias.value = value;
  return Tensor(std::move(made));
}

Chain strided_chain(const Shared& shared, const Geometry& to) {
  const lamella_operator* as_strided = lamella_lookup_operator("aten::as_strided", "", 1);
  const lamella_operator* view_dtype = lamella_lookup_operator("aten::view", "dtype", 1);
  auto strided = [&](Chain parent, const Geometry& from, const Geometry& target) {
    auto view = std::make_shared<View>();
    view->parent = std::move(parent);
    view->op = as_strided;
    view->arguments = {IValue(), IValue(target.sizes), IValue(target.strides),
                       IValue(target.offset)};
    view->from = from;
    view->to = target;
    return view;
  };
  if (to.dtype == shared.geometry.dtype) return strided(nullptr, shared.geometry, to);
  // Views the whole as a one-dimensional tensor, then as the other dtype, then by strides.
  Geometry line;
  line.dtype = shared.geometry.dtype;
  line.offset = shared.geometry.offset;
  line.sizes = {shared.geometry.span()};
  line.strides = {1};
  Chain first = strided(nullptr, shared.geometry, line);
  auto typed = std::make_shared<View>();
  typed->parent = first;
  typed->op = view_dtype;
  typed->arguments = {IValue(), IValue(to.dtype)};
  typed->from = line;
  auto have = static_cast<int64_t>(element_size(line.dtype));
  auto want = static_cast<int64_t>(element_size(to.dtype));
  typed->to = line;
  typed->to.dtype = to.dtype;
  typed->to.sizes = {line.sizes[0] * have / want};
  typed->to.offset = line.offset * have / want;
  return strided(typed, typed->to, to);
}

Alias& alias_of(lamella_tensor* wrapper) {
  Shared& shared = shared_of(wrapper);
  uint32_t place = wrapper->reserved;
  bool known =
      place != 0 && place <= shared.aliases.size() && shared.aliases[place - 1].wrapper == wrapper;
  if (known && shared.aliases[place - 1].geometry == Geometry(wrapper)) {
    return shared.aliases[place - 1];
  }
  // A wrapper made or changed without an operator is an as_strided view of the whole.
  Chain view = strided_chain(shared, Geometry(wrapper));
  if (!known) return note(shared, wrapper, std::move(view));
  Alias& alias = shared.aliases[place - 1];
  alias.geometry = Geometry(wrapper);
  alias.view = std::move(view);
  alias.value = Tensor();
  return alias;
}

void note_view(lamella_tensor* wrapper, Chain view) {
  Shared& shared = shared_of(wrapper);
  uint32_t place = wrapper->reserved;
  if (place != 0 && place <= shared.aliases.size() &&
      shared.aliases[place - 1].wrapper == wrapper) {
    return;
  }
  note(shared, wrapper, std::move(view));
}

// ---- Values ----

void flush(Session& session, Shared& shared) {
  if (shared.pending.empty()) return;
  Below below(&session);
  std::vector<Pending> pending;
  pending.swap(shared.pending);
  for (const Pending& one : pending) {
    shared.base = write_back(shared.base, one.view, one.value, session.views);
  }
}

Tensor value_of(lamella_tensor* t) {
  if (!is_functional(t)) return Tensor(TensorBase::borrow(t));
  Shared& shared = shared_of(t);
  Alias& alias = alias_of(t);
  if (alias.value.defined() && alias.generation == shared.generation) return alias.value;
  Session& session = session_for("functionalize");
  flush(session, shared);
  Chain view = alias.view;
  Tensor value;
  {
    Below below(&session);
    value = replay(shared.base, view, session.views);
    // A write through a lazy view makes values of others lazy.
    const uint32_t lazy = value.impl()->flags & ~t->flags;
    if ((lazy & LAMELLA_TENSOR_CONJ) != 0) value = value.resolve_conj();
    if ((lazy & LAMELLA_TENSOR_NEG) != 0) value = value.resolve_neg();
  }
  Alias& again = alias_of(t);
  again.value = value;
  again.generation = shared.generation;
  return value;
}

void check_writable(const char* op, const char* argument, const lamella_tensor* t) {
  bool wrapper = is_functional(t);
  LAMELLA_CHECK(wrapper && !shared_of(t).captured, op, ": expected '", argument,
                "' to be an argument of the function that functionalize() was given, or made in "
                "it, since it is written in place; got a tensor from outside");
  LAMELLA_CHECK(!shared_of(t).frozen, op, ": expected '", argument,
                "' not to be frozen, since it is written in place");
  LAMELLA_CHECK(!shared_of(t).ambiguous, op, ": expected '", argument,
                "' not to share memory with another argument of the function that functionalize() "
                "was given, since it is written in place and gradients are recorded");
}

void set_value(lamella_tensor* t, const Tensor& value) {
  Shared& shared = shared_of(t);
  Alias& alias = alias_of(t);
  ++shared.generation;
  alias.value = value;
  alias.generation = shared.generation;
  if (alias.view == nullptr) {
    shared.pending.clear();
    shared.base = value;
  } else if (!shared.pending.empty() && shared.pending.back().view == alias.view) {
    shared.pending.back().value = value;
  } else {
    shared.pending.push_back({alias.view, value});
  }
  if (alias.view != nullptr && session_for("functionalize").views.exact) {
    alias.value = Tensor();
    value_of(t);
  }
  bump_version(t);
}

void show_value(const Session& session, lamella_tensor* t, const Tensor& value) {
  Alias& alias = alias_of(t);
  LAMELLA_CHECK(!session.views.checked || value.strides().equals(alias.geometry.strides),
                alias.view->op->name, ": expected a copy with the strides of the view, ",
                IntArrayRef(alias.geometry.strides), ", got ", value.strides());
  set_sizes_and_strides(static_cast<TensorImpl*>(t), value.sizes(), value.strides(),
                        value.storage_offset());
  alias.geometry = Geometry(t);
  alias.value = value;
}

bool has_aliases(const lamella_tensor* t) {
  return std::ranges::any_of(shared_of(t).aliases, [&](const Alias& alias) {
    return alias.wrapper != nullptr && alias.wrapper != t && !alias.alive.expired();
  });
}

void set_layout(lamella_tensor* t, IntArrayRef strides) {
  Shared& shared = shared_of(t);
  Alias& alias = alias_of(t);
  std::vector<int64_t> sizes(t->sizes, t->sizes + t->ndim);
  set_sizes_and_strides(static_cast<TensorImpl*>(t), sizes, strides, t->storage_offset);
  alias.geometry = shared.geometry = Geometry(t);
}

void replace(Session& session, lamella_tensor* t, const Tensor& value) {
  Tensor fresh = wrap_value(session, value);
  shared_of(fresh.impl()).resized = true;
  shallow_copy_from(static_cast<TensorImpl*>(t), TensorImpl::of(fresh));
  t->reserved = 0;
  bump_version(t);
  Alias& alias = note(shared_of(t), t, nullptr);
  alias.value = value;
}

}  // namespace lamella::functionalize
