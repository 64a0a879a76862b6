// OperatorHandle and TypedOperatorHandle: a registered operator, found once and called often.
#pragma once
#include "lamella/dispatch/signature.h"

namespace lamella {

// "aten::add" and "Tensor".
struct OperatorId {
  std::string name;
  std::string overload_name;
  OperatorId(std::string name, std::string overload_name)
      : name(std::move(name)), overload_name(std::move(overload_name)) {}
  bool operator==(const OperatorId&) const = default;
};
LAMELLA_LAZY inline std::string toString(const OperatorId& name) {
  return name.overload_name.empty() ? name.name : str(name.name, '.', name.overload_name);
}

// The borrowed arguments of a boxed call.
class ArgumentSpan {
 public:
  ArgumentSpan(const lamella_value* data, size_t size) : data_(data), size_(size) {}
  size_t size() const { return size_; }
  const lamella_value* data() const { return data_; }
  // A view of one argument; copy it to keep it. i < size().
  const IValue& operator[](size_t i) const { return reinterpret_cast<const IValue&>(data_[i]); }
  const IValue* begin() const { return reinterpret_cast<const IValue*>(data_); }
  const IValue* end() const { return begin() + size_; }

 private:
  const lamella_value* data_;
  size_t size_;
};
// The returns of a boxed call: None until set, owned by the caller afterwards.
class ReturnSpan {
 public:
  ReturnSpan(lamella_value* data, size_t size) : data_(data), size_(size) {}
  size_t size() const { return size_; }
  lamella_value* data() const { return data_; }
  IValue& operator[](size_t i) const { return reinterpret_cast<IValue&>(data_[i]); }

 private:
  lamella_value* data_;
  size_t size_;
};

class AliasOfArgument;

// One argument or return of a schema, as text and facts. Pointers live while the operator is
// defined.
class ArgumentInfo {
 public:
  explicit ArgumentInfo(const lamella_argument_info& info) : info_(info) {}
  LAMELLA_LAZY std::string name() const { return info_.name; }
  // The printed type, such as "int[]".
  LAMELLA_LAZY std::string type_text() const { return info_.type; }
  // Both need dispatch/value_type.h, which documents the results.
  LAMELLA_LAZY ValueTypePtr type() const;
  LAMELLA_LAZY const AliasOfArgument* alias_info() const;
  bool kwarg_only() const { return info_.kwarg_only != 0; }
  bool is_write() const { return info_.is_write != 0; }
  bool is_alias() const { return info_.is_alias != 0; }
  bool is_out() const { return info_.is_out != 0; }
  bool has_default() const { return info_.has_default != 0; }
  bool is_tensor_like() const { return info_.tensor_like != 0; }

 private:
  lamella_argument_info info_;
};
enum class AliasAnalysisKind : uint8_t;
// What a kernel can ask of its operator's schema.
class OperatorSchema {
 public:
  explicit OperatorSchema(const lamella_operator* op) : op_(op) {}
  LAMELLA_LAZY std::string name() const { return op_->name; }
  LAMELLA_LAZY std::string overload_name() const { return op_->overload; }
  LAMELLA_LAZY OperatorId operator_name() const { return {op_->name, op_->overload}; }
  template <class Info = ArgumentInfo>
  std::vector<Info> arguments() const {
    return list<Info>(0, op_->argument_count);
  }
  template <class Info = ArgumentInfo>
  std::vector<Info> returns() const {
    return list<Info>(1, op_->return_count);
  }
  template <class Info = ArgumentInfo>
  bool is_mutable() const {
    for (const Info& argument : arguments<Info>()) {
      if (argument.is_write()) return true;
    }
    return false;
  }
  // The schema itself says what the operator aliases.
  template <class Kind = AliasAnalysisKind>
  Kind aliasAnalysis() const {
    return Kind::FROM_SCHEMA;
  }
  bool isDefaultAliasAnalysisKind() const { return true; }
  // The schema's text, in canonical form.
  LAMELLA_LAZY std::string str() const {
    const char* text = lamella_operator_schema(op_);
    return text != nullptr ? text : "";
  }

 private:
  template <class Info>
  std::vector<Info> list(int32_t kind, uint32_t count) const {
    std::vector<Info> result;
    for (uint32_t i = 0; i < count; ++i) {
      lamella_argument_info info;
      detail::check(lamella_operator_argument(op_, kind, i, &info));
      result.emplace_back(info);
    }
    return result;
  }
  const lamella_operator* op_;
};
LAMELLA_LAZY inline std::string toString(const OperatorSchema& schema) { return schema.str(); }
template <class Stream>
  requires requires(Stream& out, const std::string& text) { out.write(text.data(), 1); }
Stream& operator<<(Stream& out, const OperatorSchema& schema) {
  const std::string text = schema.str();
  out.write(text.data(), static_cast<std::ptrdiff_t>(text.size()));
  return out;
}

template <class Signature>
class TypedOperatorHandle;

// An operator that was found. Cheap to copy; stays valid when the operator is undefined again, or
// defined anew with other types (a call then fails with an error that says so).
class OperatorHandle {
 public:
  explicit OperatorHandle(const lamella_operator* op) : op_(op) {}

  // `const`, so that it binds to `auto&` as PyTorch's reference does.
  LAMELLA_LAZY const OperatorId operator_name() const { return {op_->name, op_->overload}; }
  OperatorSchema schema() const { return OperatorSchema(op_); }
  bool hasSchema() const { return lamella_operator_schema(op_) != nullptr; }
  // Whether a kernel is registered for the key itself, not for an alias of it or as a fallback.
  bool hasKernelForDispatchKey(DispatchKey key) const {
    return lamella_operator_has_kernel(op_, static_cast<uint16_t>(key)) != 0;
  }
  bool hasKernelForAnyDispatchKey() const {
    for (uint16_t key = 0; key < static_cast<uint16_t>(DispatchKey::EndOfKeys); ++key) {
      if (lamella_operator_has_kernel(op_, key) != 0) return true;
    }
    return false;
  }
  const lamella_operator* impl() const { return op_; }
  bool operator==(const OperatorHandle& other) const { return op_ == other.op_; }

  // Checks the C++ signature against the operator's schema. Throws where they differ.
  template <class Signature>
  TypedOperatorHandle<Signature> typed() const {
    detail::check(lamella_check_signature(op_, abi::Call<Signature>::signature()));
    return TypedOperatorHandle<Signature>(op_);
  }

  // Takes the arguments from the stack and leaves the returns there.
  LAMELLA_LAZY void callBoxed(Stack* stack) const {
    run_on_stack(stack, [&](const lamella_value* arguments, lamella_value* returns) {
      return lamella_call_boxed(op_, arguments, op_->argument_count, returns, op_->return_count);
    });
  }
  LAMELLA_LAZY void callBoxed(Stack& stack) const { callBoxed(&stack); }
  LAMELLA_LAZY void redispatchBoxed(DispatchKeySet keys, Stack* stack) const {
    run_on_stack(stack, [&](const lamella_value* arguments, lamella_value* returns) {
      return redispatch_boxed_status(keys, arguments, returns);
    });
  }
  // The same on borrowed values, without a copy.
  LAMELLA_LAZY void callBoxed(ArgumentSpan arguments, ReturnSpan returns) const {
    lamella_status status;
    if (arguments.size() == op_->argument_count && returns.size() == op_->return_count) [[likely]] {
      uint64_t keys = abi::with_thread(abi::keys_of_values(arguments.data(), op_->argument_count),
                                       op_, lamella_thread);
      status = abi::call_boxed(op_, keys, arguments.data(), returns.data());
    } else {
      // Says which count is wrong.
      status = lamella_call_boxed(op_, arguments.data(), static_cast<uint32_t>(arguments.size()),
                                  returns.data(), static_cast<uint32_t>(returns.size()));
    }
    if (status != LAMELLA_OK) [[unlikely]]
      detail::throw_status(status);
  }
  LAMELLA_LAZY void redispatchBoxed(DispatchKeySet keys, ArgumentSpan arguments,
                                    ReturnSpan returns) const {
    lamella_status status = redispatch_boxed_status(keys, arguments.data(), returns.data());
    if (status != LAMELLA_OK) [[unlikely]]
      detail::throw_status(status);
  }
  // The arguments from the end of the stack go to `call(arguments, returns)`, a boxed call of this
  // operator; the returns replace them.
  template <class F>
  void run_on_stack(Stack* stack, F&& call) const {
    auto& values = detail::lazily<int{sizeof(F) != 0}>(*stack);
    size_t taken = op_->argument_count;
    LAMELLA_CHECK(values.size() >= taken, op_->name, ": expected ", taken,
                  " arguments on the stack, got ", values.size());
    ValueBuffer returns(op_->return_count);
    const IValue* first = values.data() + (values.size() - taken);
    detail::check(call(reinterpret_cast<const lamella_value*>(first), returns.data()));
    drop(values, taken);
    for (uint32_t i = 0; i < op_->return_count; ++i) values.push_back(IValue::adopt(returns[i]));
  }

 private:
  lamella_status redispatch_boxed_status(DispatchKeySet keys, const lamella_value* arguments,
                                         lamella_value* returns) const {
    return abi::call_boxed(op_, abi::masked(op_, keys.raw_repr()), arguments, returns);
  }

 protected:
  const lamella_operator* op_;
};

// An operator with its C++ signature: a call is one indirect jump.
template <class R, class... A>
class TypedOperatorHandle<R(A...)> final : public OperatorHandle {
 public:
  explicit TypedOperatorHandle(const lamella_operator* op) : OperatorHandle(op) {}

  // Key set from the arguments and this thread.
  [[gnu::always_inline]] inline R call(A... arguments) const {
    uint64_t keys = abi::with_thread(abi::keys_of(arguments...), op_, lamella_thread);
    return abi::Call<R(A...)>::invoke(op_, keys, arguments...);
  }
  // Only the kernel of one key.
  [[gnu::always_inline]] inline R callWithDispatchKey(DispatchKey key, A... arguments) const {
    return redispatch(DispatchKeySet(key), arguments...);
  }
  // The given key set, whatever the thread says.
  [[gnu::always_inline]] inline R redispatch(DispatchKeySet keys, A... arguments) const {
    return abi::Call<R(A...)>::invoke(op_, abi::masked(op_, keys.raw_repr()), arguments...);
  }
};

}  // namespace lamella
