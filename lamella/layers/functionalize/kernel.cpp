// The kernel of the Functionalize key, for every operator: Note [Programs without writes].
#include <algorithm>

#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/core/scalar_type.h"
#include "lamella/core/version_counter.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/dispatcher.h"
#include "lamella/dispatch/layer_fallback.h"
#include "lamella/dispatch/signature.h"
#include "lamella/layers/functionalize/plan.h"
#include "lamella/layers/functionalize/value.h"

namespace lamella::functionalize {

Session* open_session(bool copies);  // value.cpp

namespace {

// The keys of backends and composite kernels.
constexpr uint64_t kKernels =
    DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::BackendSelect).raw_repr();

// A copy of the value with each tensor in it replaced by change(tensor).
template <class F>
IValue changed(const IValue& value, F&& change) {
  if (value.isTensor()) {
    Tensor tensor = value.toTensor();
    return tensor.defined() ? IValue(change(tensor)) : value;
  }
  if (!value.isTensorList()) return value;
  std::vector<Tensor> list = value.toTensorVector();
  for (Tensor& tensor : list) {
    if (tensor.defined()) tensor = change(tensor);
  }
  return IValue(list);
}

IValue inner_of(const lamella_value& value) {
  return changed(IValue::from_borrowed(value),
                 [](const Tensor& tensor) { return value_of(tensor.impl()); });
}
IValue wrapped(Session& session, const IValue& value) {
  return changed(value, [&](const Tensor& tensor) { return wrap_value(session, tensor); });
}

Values call_below(Session& session, const lamella_operator* op, const Values& arguments) {
  Below below(&session);
  return call(op, arguments);
}

void give(Values&& results, lamella_value* returns) {
  for (size_t i = 0; i < results.size(); ++i) returns[i] = std::move(results[i]).unsafe_release();
}

std::vector<Tensor> tensors_of(const IValue& value) {
  if (value.isTensorList()) return value.toTensorVector();
  if (value.isTensor()) return {value.toTensor()};
  return {};
}

// ---- Pure operators ----

// For its lifetime, calls go to the level below without any layer that the thread includes.
class Unseen {
 public:
  explicit Unseen(Session* session) : below_(session), included_(lamella_thread.included) {
    lamella_thread.included = 0;
  }
  ~Unseen() { lamella_thread.included = included_; }

 private:
  Below below_;
  uint64_t included_;
};

Tensor without_elements(const Tensor& like) {
  return Tensor(make_empty_strided(like.sizes(), like.strides(), like.scalar_type(),
                                   Device(DeviceType::Meta)));
}

// The strides of a value may differ from those of its wrapper, and so may those of results. The
// result's wrapper gets the strides that a call without the layer would give, as later views depend
// on them; they come from a call on meta tensors. If that fails, the value's own strides are kept.
void set_reference_strides(Session& session, const lamella_operator* op,
                           const lamella_value* arguments, const Values& values, Values& results) {
  bool differs = false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (arguments[i].tag != LAMELLA_TENSOR || !is_functional(arguments[i].as.tensor)) continue;
    const lamella_tensor* t = arguments[i].as.tensor;
    differs |= !values[i].toTensor().strides().equals({t->strides, static_cast<size_t>(t->ndim)});
  }
  if (!differs) return;
  Values expected;
  try {
    Values given;
    for (size_t i = 0; i < values.size(); ++i) {
      given.push_back(changed(IValue::from_borrowed(arguments[i]), without_elements));
    }
    Unseen unseen(&session);
    expected = call(op, given);
  } catch (const std::exception&) {
    return;  // the operator's result depends on elements, or it has no kernel for the Meta backend
  }
  for (size_t r = 0; r < results.size(); ++r) {
    if (!results[r].isTensor() || !expected[r].isTensor()) continue;
    Tensor result = results[r].toTensor(), like = expected[r].toTensor();
    if (!result.defined() || !like.defined() || !result.sizes().equals(like.sizes()) ||
        result.strides().equals(like.strides()) || !like.is_non_overlapping_and_dense()) {
      continue;
    }
    set_layout(result.impl(), like.strides());
  }
}

void run_pure(Session& session, const lamella_operator* op, const lamella_value* arguments,
              lamella_value* returns) {
  Values values;
  for (uint32_t i = 0; i < op->argument_count; ++i) values.push_back(inner_of(arguments[i]));
  Values results = call_below(session, op, values);
  for (IValue& result : results) result = wrapped(session, result);
  set_reference_strides(session, op, arguments, values, results);
  give(std::move(results), returns);
}

// ---- Views ----

std::shared_ptr<View> view_step(const lamella_operator* op, const lamella_value* arguments,
                                size_t self, lamella_tensor* of) {
  auto view = std::make_shared<View>();
  view->parent = alias_of(of).view;
  view->op = op;
  view->self = self;
  view->from = Geometry(of);
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    view->arguments.push_back(i == self ? IValue() : inner_of(arguments[i]));
  }
  return view;
}

void note_result(const lamella_operator* op, const lamella_value* arguments, size_t self,
                 lamella_tensor* of, lamella_tensor* result, int index, bool exact) {
  if (std::string_view(op->name) == "aten::as_strided" && !exact) {
    note_view(result, strided_chain(shared_of(of), Geometry(result)));
    return;
  }
  std::shared_ptr<View> view = view_step(op, arguments, self, of);
  view->index = index;
  view->to = Geometry(result);
  note_view(result, std::move(view));
}

// A view kernel of another library may read memory, so it runs on the value instead of the wrapper.
// The geometry of its result becomes that of a view of the wrapper.
void run_foreign_view(Session& session, const lamella_operator* op, const lamella_value* arguments,
                      lamella_value* returns, size_t self, lamella_tensor* of) {
  Values values;
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    lamella_value argument = arguments[i];
    if (i == self) argument.as.tensor = of;
    values.push_back(inner_of(argument));
  }
  const lamella_operator* copy = session.views.copies ? copy_form(op) : nullptr;
  Values results = call_below(session, copy != nullptr ? copy : op, values);
  Tensor whole{TensorBase::borrow(of)};
  Tensor inner = values[self].toTensor();
  for (IValue& result : results) {
    int index = result.isTensorList() ? 0 : -1;
    result = changed(result, [&](const Tensor& shown) {
      bool same =
          shown.impl()->storage == inner.impl()->storage && inner.strides().equals(whole.strides());
      std::vector<int64_t> strides = shown.strides().vec();
      int64_t offset = whole.storage_offset();
      if (same) {
        offset += shown.storage_offset() - inner.storage_offset();
      } else {
        int64_t next = 1;
        for (size_t d = strides.size(); d-- > 0;) {
          strides[d] = next;
          next *= std::max<int64_t>(shown.sizes()[d], 1);
        }
      }
      Tensor made{make_view_as(whole, shown.sizes(), strides, offset, shown.scalar_type())};
      note_result(op, arguments, self, of, made.impl(), index, false);
      if (index >= 0) ++index;
      return made;
    });
  }
  give(std::move(results), returns);
}

// Computes the views that a call made, from the last value of its argument that was read.
void show(Session& session, lamella_tensor* of, const lamella_value& made) {
  Tensor parent = alias_of(of).value;
  if (!parent.defined()) parent = value_of(of);
  Chain view;
  each_tensor(made, [&](lamella_tensor* t) { view = alias_of(t).view; });
  if (view == nullptr) return;
  Values results;
  {
    Below below(&session);
    results = replay_step(*view, parent, session.views);
  }
  std::vector<Tensor> values = tensors_of(results[0]);
  size_t k = 0;
  each_tensor(made, [&](lamella_tensor* t) { show_value(session, t, values.at(k++)); });
}

void run_view(Session& session, const lamella_operator* op, uint64_t keys,
              const lamella_value* arguments, lamella_value* returns,
              const FunctionalizePlan& plan) {
  const std::vector<uint16_t>& viewed = plan.facts->viewed;
  size_t self = viewed.empty() ? 0 : viewed.front();
  for (uint16_t i : viewed) {
    if (arguments[i].tag == LAMELLA_TENSOR && is_functional(arguments[i].as.tensor)) self = i;
  }
  LAMELLA_CHECK(arguments[self].tag == LAMELLA_TENSOR && arguments[self].as.tensor != nullptr,
                plan.name, ": expected '", plan.argument_names[self],
                "' to be a tensor to functionalize the views of");
  Tensor of{TensorBase::borrow(arguments[self].as.tensor)};
  if (!is_functional(of.impl())) {
    of = wrap_value(session, of, true);
    // A tensor just made by lamella.tensor() has no other users, so it may be written.
    if (std::string_view(op->name) == "aten::lift_fresh") {
      if (session.views.exact) {
        of = Tensor(TensorBase::borrow(arguments[self].as.tensor));
        of = wrap_value(session, call_below(session, copy_form(op), {IValue(of)})[0].toTensor());
      }
      returns[0] = IValue(of).unsafe_release();
      return;
    }
    shared_of(of.impl()).captured = true;
  }
  if (std::string_view(op->name).substr(0, 6) != "aten::") {
    run_foreign_view(session, op, arguments, returns, self, of.impl());
    return;
  }
  std::vector<lamella_value> with(arguments, arguments + op->argument_count);
  with[self].as.tensor = of.impl();
  lamella::detail::check(
      abi::call_boxed(op, abi::masked(op, keys & kKernels), with.data(), returns));
  for (uint32_t r = 0; r < op->return_count; ++r) {
    int index = returns[r].tag == LAMELLA_TENSOR_LIST ? 0 : -1;
    each_tensor(returns[r], [&](lamella_tensor* result) {
      if (result->storage == of.impl()->storage) {
        note_result(op, arguments, self, of.impl(), result, index, session.views.exact);
      }
      if (index >= 0) ++index;
    });
  }
  if (session.views.exact && op->return_count == 1) show(session, of.impl(), returns[0]);
}

// ---- Writes ----

void check_targets(const FunctionalizePlan& plan, const lamella_value* arguments) {
  for (uint16_t i : plan.facts->written) {
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      if (t == nullptr) return;
      check_writable(plan.name.c_str(), plan.argument_names[i].c_str(), t);
      bool dense = Geometry(t).span() >= t->numel;
      for (int32_t d = 0; d < t->ndim; ++d) {
        LAMELLA_CHECK(t->numel == 0 || (dense && (t->sizes[d] <= 1 || t->strides[d] != 0)),
                      plan.name, ": expected '", plan.argument_names[i],
                      "' to have memory of its own for each element it writes, got one expanded "
                      "to ",
                      IntArrayRef(t->sizes, static_cast<size_t>(t->ndim)), "; clone it first");
      }
    });
  }
}

Values form_arguments(const Form& form, const FunctionalizePlan& plan,
                      const lamella_value* arguments) {
  Values values;
  for (int i : form.arguments) {
    if (i >= 0) {
      values.push_back(inner_of(arguments[i]));
      continue;
    }
    const lamella_value& out = arguments[plan.facts->written.front()];
    bool known = out.tag == LAMELLA_TENSOR && out.as.tensor != nullptr;
    Tensor tensor{TensorBase::borrow(known ? out.as.tensor : nullptr)};
    if (known && i == kDtype) {
      values.emplace_back(tensor.scalar_type());
    } else if (known && i == kDevice) {
      values.emplace_back(tensor.device());
    } else {
      values.emplace_back();
    }
  }
  return values;
}

// The index, among a form's results, of the new value of a written argument.
size_t place_of(const FunctionalizePlan& plan, size_t argument) {
  const OperatorFacts& facts = *plan.facts;
  for (size_t r = 0; r < facts.returns.size(); ++r) {
    if (facts.returns[r].written == static_cast<int>(argument)) return r;
  }
  for (size_t k = 0; k < facts.not_returned.size(); ++k) {
    if (facts.not_returned[k] == argument) return facts.returns.size() + k;
  }
  return 0;
}

bool fits(const lamella_tensor* target, const Tensor& value, bool dtype_too) {
  return value.defined() &&
         value.sizes().equals(IntArrayRef(target->sizes, static_cast<size_t>(target->ndim))) &&
         (!dtype_too || static_cast<uint8_t>(value.scalar_type()) == target->scalar_type);
}

bool all_fit(const FunctionalizePlan& plan, const lamella_value* arguments, const Values& results) {
  for (uint16_t i : plan.facts->written) {
    std::vector<Tensor> values = tensors_of(results[place_of(plan, i)]);
    size_t k = 0;
    bool good = true;
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      if (t == nullptr || k >= values.size()) {
        good = good && t == nullptr;
      } else {
        good = good && fits(t, values[k], true);
      }
      ++k;
    });
    if (!good) return false;
  }
  return true;
}

// True if all written arguments are out arguments without elements or aliases: they take the
// result's shape.
bool takes_shape(const FunctionalizePlan& plan, const lamella_value* arguments,
                 const Values& results) {
  for (uint16_t i : plan.facts->written) {
    if (plan.in_place || arguments[i].tag != LAMELLA_TENSOR) return false;
    const lamella_tensor* target = arguments[i].as.tensor;
    std::vector<Tensor> values = tensors_of(results[place_of(plan, i)]);
    if (values.size() != 1 || !values[0].defined() || (target->numel != 0 && has_aliases(target)) ||
        static_cast<uint8_t>(values[0].scalar_type()) != target->scalar_type) {
      return false;
    }
  }
  return true;
}

// Converts the result of an in-place pointwise operator, computed in the common type, to the dtype
// of its target.
bool convert(Session& session, const FunctionalizePlan& plan, const lamella_value* arguments,
             Values& results) {
  if (!plan.in_place || !plan.pointwise || arguments[0].tag != LAMELLA_TENSOR) return false;
  const lamella_tensor* target = arguments[0].as.tensor;
  Tensor value = tensors_of(results[0]).at(0);
  auto dtype = static_cast<ScalarType>(target->scalar_type);
  if (!fits(target, value, false) || !can_cast(value.scalar_type(), dtype)) return false;
  Below below(&session);
  results[0] = IValue(lamella::_to_copy(value, TensorOptions().dtype(dtype).layout(kStrided)));
  return true;
}

void run_write(Session& session, const lamella_operator* op, const lamella_value* arguments,
               lamella_value* returns, const FunctionalizePlan& plan) {
  check_targets(plan, arguments);
  Form form = plan.family;
  Values results;
  bool good = false;
  if (form.op != nullptr) {
    results = call_below(session, form.op, form_arguments(form, plan, arguments));
    good = all_fit(plan, arguments, results) || takes_shape(plan, arguments, results) ||
           convert(session, plan, arguments, results);
  }
  if (!good) {
    form = made_form(op, plan);
    if (form.op != nullptr) {
      results = call_below(session, form.op, form_arguments(form, plan, arguments));
    }
  }
  for (uint16_t i : plan.facts->written) {
    std::vector<Tensor> values = tensors_of(results[place_of(plan, i)]);
    size_t k = 0;
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      if (t != nullptr && k < values.size()) {
        if (fits(t, values[k], true)) {
          set_value(t, values[k]);
        } else {
          replace(session, t, values[k]);
        }
      }
      ++k;
    });
  }
  for (uint32_t r = 0; r < op->return_count; ++r) {
    int argument = plan.facts->returns[r].written;
    IValue result =
        argument >= 0 ? IValue::from_borrowed(arguments[argument]) : wrapped(session, results[r]);
    returns[r] = std::move(result).unsafe_release();
  }
}

// ---- Changes of metadata ----

void give_self(const lamella_operator* op, const lamella_value* arguments, lamella_value* returns) {
  if (op->return_count != 0) returns[0] = IValue::from_borrowed(arguments[0]).unsafe_release();
}

// Gives the wrapper the storage, geometry and view of another wrapper.
void become(lamella_tensor* t, lamella_tensor* other) {
  Chain view = alias_of(other).view;
  shallow_copy_from(static_cast<TensorImpl*>(t), static_cast<TensorImpl*>(other));
  t->reserved = 0;
  note_view(t, std::move(view));
}

// Makes the wrapper the view of itself that a view operator gives.
void become_view(Session& session, const lamella_operator* view_op, uint64_t keys,
                 const lamella_value* arguments) {
  lamella_value result;
  run_view(session, view_op, keys, arguments, &result, *plan_of(view_op));
  lamella_tensor* t = arguments[0].as.tensor;
  Tensor shown = IValue::adopt(result).toTensor();
  Alias& made = alias_of(shown.impl());
  Chain view = made.view;
  Tensor value = made.value;
  set_sizes_and_strides(static_cast<TensorImpl*>(t), shown.sizes(), shown.strides(),
                        shown.storage_offset());
  t->reserved = 0;
  note_view(t, std::move(view));
  alias_of(t).value = value;
}

void run_metadata(Session& session, const lamella_operator* op, uint64_t keys,
                  const lamella_value* arguments, lamella_value* returns,
                  const FunctionalizePlan& plan) {
  check_writable(plan.name.c_str(), plan.argument_names[0].c_str(), arguments[0].as.tensor);
  if (plan.view.op == nullptr) {
    // The wrapper is then an as_strided view with the new geometry: see alias_of().
    lamella::detail::check(
        abi::call_boxed(op, abi::masked(op, keys & kKernels), arguments, returns));
    return;
  }
  become_view(session, plan.view.op, keys, arguments);
  give_self(op, arguments, returns);
}

void run_resize(Session& session, const lamella_operator* op, uint64_t keys,
                const lamella_value* arguments, lamella_value* returns,
                const FunctionalizePlan& plan) {
  lamella_tensor* t = arguments[0].as.tensor;
  check_writable(plan.name.c_str(), "self", t);
  IValue size = IValue::from_borrowed(arguments[1]);
  IntArrayRef sizes = size.toIntList();
  MemoryFormat format = MemoryFormat::Contiguous;
  bool formatted = arguments[2].tag != LAMELLA_NONE;
  if (formatted) format = IValue::from_borrowed(arguments[2]).toMemoryFormat();
  LAMELLA_CHECK(format != MemoryFormat::Preserve,
                "resize_: expected a 'memory_format' other than preserve_format");
  for (int64_t s : sizes) {
    LAMELLA_CHECK(s >= 0, "resize_: expected sizes of at least 0, got ", sizes);
  }
  give_self(op, arguments, returns);
  IntArrayRef have(t->sizes, static_cast<size_t>(t->ndim));
  if (have.equals(sizes) && !formatted) return;
  std::vector<int64_t> strides(sizes.size());
  strides_of_format(sizes, format, strides.data());
  int64_t wanted = checked_numel(sizes, "resize_");
  Shared& shared = shared_of(t);
  Geometry line(t);
  auto item = static_cast<int64_t>(element_size(line.dtype));
  int64_t there = static_cast<int64_t>(t->storage->nbytes) / item - line.offset;
  if (session.views.exact) {
    LAMELLA_CHECK(wanted <= there || !has_aliases(t),
                  "resize_: expected 'self' to have no aliases, ", "since it becomes larger");
    Values given{IValue(value_of(t)), size, IValue::from_borrowed(arguments[2])};
    Tensor resized = call_below(session, made_form(op, plan).op, given)[0].toTensor();
    if (wanted > there) return replace(session, t, resized);
    const lamella_operator* as_strided = lamella_lookup_operator("aten::as_strided", "", 1);
    IValue steps(strides), none;
    lamella_value view[] = {arguments[0], arguments[1], steps.value(), none.value()};
    return become_view(session, as_strided, keys, view);
  }
  if (wanted <= there) {
    set_sizes_and_strides(static_cast<TensorImpl*>(t), sizes, strides, line.offset);
    alias_of(t);
    return;
  }
  // The wrapper gets a larger storage that begins with the old elements; aliases keep the old one.
  line.sizes = {there};
  line.strides = {1};
  flush(session, shared);
  Chain chain = strided_chain(shared, line);
  Tensor value;
  {
    Below below(&session);
    Tensor old = there == 0 ? Tensor() : replay(shared.base, chain, session.views);
    Device device(static_cast<DeviceType>(t->device_type), t->device_index);
    Tensor rest =
        lamella::zeros({wanted - there}, TensorOptions().dtype(line.dtype).device(device));
    Tensor all = old.defined() ? lamella::cat({old, rest}) : rest;
    value = session.views.copies ? lamella::as_strided_copy(all, sizes, strides, 0)
                                 : all.as_strided(sizes, strides, 0);
  }
  replace(session, t, value);
}

void run_set(Session& session, const lamella_operator* op, const lamella_value* arguments,
             lamella_value* returns, const FunctionalizePlan& plan) {
  lamella_tensor* t = arguments[0].as.tensor;
  check_writable(plan.name.c_str(), "self", t);
  auto dtype = static_cast<ScalarType>(t->scalar_type);
  Device device(static_cast<DeviceType>(t->device_type), t->device_index);
  Tensor source;
  if (op->argument_count == 1) {
    Below below(&session);
    source = lamella::empty({0}, TensorOptions().dtype(dtype).device(device));
  } else {
    source = Tensor(TensorBase::borrow(arguments[1].as.tensor));
    LAMELLA_CHECK(source.scalar_type() == dtype, "set_: expected 'source' to be ", dtype, ", got ",
                  source.scalar_type());
  }
  if (!is_functional(source.impl())) {
    source = wrap_value(session, source, true);
    shared_of(source.impl()).captured = op->argument_count != 1;
  }
  if (op->argument_count == 5) {
    IntArrayRef size(static_cast<const int64_t*>(arguments[3].as.pointer), arguments[3].size);
    std::vector<int64_t> strides(
        static_cast<const int64_t*>(arguments[4].as.pointer),
        static_cast<const int64_t*>(arguments[4].as.pointer) + arguments[4].size);
    if (strides.empty() && !size.empty()) {
      strides.resize(size.size());
      strides_of_format(size, MemoryFormat::Contiguous, strides.data());
    }
    source = Tensor(make_checked_view(source, size, strides, arguments[2].as.i));
  }
  become(t, source.impl());
  bump_version(t);
  give_self(op, arguments, returns);
}

lamella_status run(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                   const lamella_value* arguments, lamella_value* returns) noexcept {
  try {
    Session& session = session_for(op->name);
    PlanRef<FunctionalizePlan> held = plan_of(op);
    const FunctionalizePlan& plan = *held;
    uint64_t kernels = abi::masked(op, keys & kKernels);
    if (plan.kind == Kind::kComposite || is_composite(op, kernels)) {
      return abi::call_boxed(op, kernels, arguments, returns);
    }
    switch (plan.kind) {
      case Kind::kView:
        run_view(session, op, keys, arguments, returns, plan);
        break;
      case Kind::kWrite:
        run_write(session, op, arguments, returns, plan);
        break;
      case Kind::kMetadata:
        run_metadata(session, op, keys, arguments, returns, plan);
        break;
      case Kind::kResize:
        run_resize(session, op, keys, arguments, returns, plan);
        break;
      case Kind::kSet:
        run_set(session, op, arguments, returns, plan);
        break;
      case Kind::kDetach:
        give_self(op, arguments, returns);
        break;
      default:
        run_pure(session, op, arguments, returns);
    }
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

fork::Once registered;

}  // namespace

void register_layer() {
  registered([] { register_layer_fallback(DispatchKey::Functionalize, &run, __FILE__, __LINE__); });
}

Session* begin(bool copies) {
  register_layer();
  return open_session(copies);
}

}  // namespace lamella::functionalize
