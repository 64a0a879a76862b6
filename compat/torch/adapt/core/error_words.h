// PyTorch's words for the mistakes that Lamella's errors report.
//
// Note [PyTorch's words]
//   Programs that were written for PyTorch look for parts of its texts in
//   c10::Error::what_without_backtrace(). That name is PyTorch's, so it adds PyTorch's words behind
//   Lamella's text; what() and msg() have Lamella's alone. A row holds a part of Lamella's text,
//   where * stands for any text, and the words, where $1 is what the first * stands for and $0 is
//   the text before the part.
#pragma once
#include <array>
#include <new>
#include <string>
#include <string_view>

#include "lamella/core/error.h"

namespace lamella {
namespace detail {
struct ErrorWords {
  const char *part, *words;

  // Appends the words if the text has the part, or returns false.
  bool add_to(std::string& out, std::string_view text) const {
    std::array<std::string_view, 5> stars;
    std::string_view rest = part;
    for (size_t at = 0, count = 0;; ++count) {
      const size_t star = rest.find('*');
      const std::string_view piece = rest.substr(0, star);
      const size_t found = star == rest.npos && piece.empty() ? text.size() : text.find(piece, at);
      if (found == text.npos) return false;
      stars[count] = text.substr(at, found - at);
      at = found + piece.size();
      if (star == rest.npos) break;
      rest.remove_prefix(star + 1);
    }
    out += '\n';
    for (const char* c = words; *c != '\0'; ++c) {
      if (*c == '$') {
        out += stars[static_cast<size_t>(*++c - '0')];
      } else {
        out += *c;
      }
    }
    return true;
  }
};

LAMELLA_LAZY std::string with_words(std::string_view text) {
  static const ErrorWords rows[] = {
      {"forward: expected argument * to be of type *, got *",
       "Expected argument #$1 to be of type $2, but received value of type $3"},
      {": forward: expected * to * arguments, got *",
       "$0's forward() method expects at least $1 argument(s) and at most $2 argument(s), but "
       "received $3."},
      {": forward: expected * arguments, got *",
       "$0's forward() method expects $1 argument(s), but received $2. If $0's forward() method "
       "has default arguments, please make sure the forward() method is declared with a "
       "corresponding `FORWARD_HAS_DEFAULT_ARGS` macro."},
      {"AnyModule: expected the type of the module, *, got *",
       "Attempted to cast module of type $1 to type $2"},
      {"AnyModule: *: expected a module, got an empty one",
       "Cannot call $1() on an empty AnyModule"},
      {"AnyValue: expected the type of the value, *, got *",
       "Attempted to cast AnyValue to $2, but its actual type is $1; The type of the return value "
       "is $1, but you asked for type $2"},
      {"nn: expected one of the names, got * '*'", "$1 '$2' is not defined"},
      {"nn: expected the type of the module, *, got another one", "Unable to cast module"},
      {"nn: expected * numbers, got *, [", "Expected $1 values, but instead got $2"},
      {": expected an index below * got", "Index out of range"},
      {"Module: expected a name without a dot, got * ''", "$1 name must not be empty"},
      {"Module: expected a name without a dot, got * '*'",
       "$1 name must not contain a dot (got '$2')"},
      {": expected a new name, got * '*' again", "$1 '$2' already defined"},
      {"OrderedDict: insert: expected a new key, got * '*' again", "$1 '$2' already defined"},
      {"OrderedDict: *: expected an entry, got none", "Called $1() on an empty OrderedDict"},
      {"Module: expected one of its modules, got '*'", "No Module with name `$1` is registered"},
      {"clone: expected a module that derives from Cloneable", "clone() has not been implemented"},
      {"ModuleHolder: expected a module, got an empty holder", "Accessing empty ModuleHolder"},
      {"DataLoader: expected an iterator before the end to increment",
       "Attempted to increment iterator past the end; Incrementing the DataLoader's past-the-end "
       "iterator is not allowed"},
      {"DataLoader: expected an iterator before the end to read",
       "Attempted to dereference iterator that was past the end; Dereferencing the DataLoader's "
       "past-the-end iterator is not allowed"},
      {"DataLoader: expected a batch in * ms, got none",
       "Timeout in DataLoader queue while waiting for next batch (timeout was $1 ms)"},
      {"DataLoader: expected a data set that knows its size",
       "Expected the dataset to be sized in order to construct the Sampler"},
      {"ChunkDataset: expected batches of * examples to be requested, got *",
       "The requested batch size does not match with the initialized batch size.\n The requested "
       "batch size is $2, while the dataset is created with batch size equal to $1"},
      {"expected the outputs to depend on input *", "Set allow_unused=True"},
      {"grad: expected 'inputs' to have tensors, got an empty list",
       "grad requires non-empty inputs."},
      {"backward: expected 'inputs' to have tensors, got an empty list",
       "'inputs' argument to backward cannot be empty"},
      {": it was written in place since",
       "one of the variables needed for gradient computation has been modified by an inplace "
       "operation"},
      {"not to be a leaf that requires gradients, since it is written in place",
       "a leaf Variable that requires grad is being used in an in-place operation."},
      {": expected gradient * of shape *, got *",
       "returned an invalid gradient at index $1 - got $3 but expected shape compatible with $2"},
      {": has no derivative (", "derivative for $0 is not implemented"},
      {": expected input * to require gradients",
       "element $1 of the input tensors does not require grad"},
      {"not to be made in inference mode, since gradients are recorded",
       "Inplace update to inference tensor outside InferenceMode is not allowed."},
      {"not to be made in inference mode, since it is written outside of it",
       "Inplace update to inference tensor outside InferenceMode is not allowed."},
      {"not to be made in inference mode, since it is saved for backward",
       "Inference tensors cannot be saved for backward."},
      {"requires_grad_: expected a tensor made outside of inference mode",
       "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."},
      {"Conv: expected 'stride' to be 1 for the padding 'same'",
       "padding='same' is not supported for strided convolutions"},
      {"Conv: expected 'in_channels' and 'out_channels' to be multiples of 'groups'",
       "in_channels, groups and out_channels must be positive"},
      {"AdaptiveLogSoftmaxWithLoss: expected 'div_value' to be other than 0",
       "div_value should not be equal to 0"},
      {"binary_cross_entropy_with_logits: expected 'target' to be of shape",
       "Target size must be the same as input size"},
      {"Cell: expected 'input' to have * numbers in its last dimension, got [*, *]",
       "input has inconsistent input_size: got $3 expected $1"},
      {"pack_padded_sequence: expected 'lengths' to fall",
       "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
       "pass `enforce_sorted=False` to pack_padded_sequence"},
      {"pad_packed_sequence: expected 'total_length' to be at least",
       "Expected total_length to be at least the length of the longest sequence in input"},
      {"Optimizer: expected each parameter in one group",
       "some parameters appear in more than one parameter group"},
      {"Sequential: expected at least one module", "Cannot call forward() on an empty Sequential"},
      {"Sequential: forward: expected a result of type *, got *",
       "The type of the return value is $2, but you asked for type $1"},
      {": expected '*' to be positive, got 0", "$1 must be greater than zero"},
      {"load: expected a tensor '*', got none", "No such serialized tensor '$1'"},
      {"load: expected an archive '*', got none", "No such serialized submodule: '$1'"},
      {"load: expected a value '*', got none", "does not have a field with name '$1'"},
      {"Scalar: expected a value that fits float32, got (",
       "value cannot be converted to type float without overflow; \"tensor_cpu\" not implemented "
       "for 'Float'"},
      {"backward: expected 'gradient' for output *, since it has more than one element",
       "grad can be implicitly created only for scalar outputs"},
      {"backward: expected 'gradient' for output *, since it is",
       "grad can be computed only for real scalar outputs"},
      {"requires_grad_: expected a leaf, got",
       "you can only change requires_grad flags of leaf variables."},
      {"interpolate: expected 'input' to have 3 to 5 dimensions, got *",
       "Input Error: Only 3D, 4D and 5D input Tensors supported (got $1D) for the modes"},
      {"to be a view that was made while gradients are recorded, got one made under no_grad()",
       "A view was created in no_grad mode and is being modified inplace; A view was created in "
       "inference mode and is being modified inplace"},
      {"not to be a view of a leaf that requires gradients, since it is written in place",
       "a view of a leaf Variable that requires grad is being used in an in-place operation."},
      {"Module: modules: expected a module that a shared pointer holds",
       "It looks like you attempted to retrieve your top-level module as a shared_ptr, but it is "
       "not stored in a shared_ptr."},
      {"index: expected one index or more, got none",
       "Passing an empty index list to Tensor::index() is not valid syntax; Passing an empty index "
       "list to Tensor::index_put_() is not valid syntax"},
      {"index: expected a position in dimension * of size *, got *",
       "index $3 is out of bounds for dimension $1 with size $2"},
      {"index: expected at most * indices, got *",
       "too many indices for tensor of dimension $1; invalid index of a $1-dim tensor"},
      {"index: expected no positions in a dimension of size 0",
       "index is out of bounds for dimension with size 0"},
      {"index_put_: expected 'values' to be broadcastable to *, got *",
       "shape mismatch: value tensor of shape $2 cannot be broadcast to indexing result of shape "
       "$1"},
      {"index: expected \"...\", got \"*\"",
       "Expected \"...\" to represent an ellipsis index, but got \"$1\""},
      {"Transformer: expected 'src' and 'tgt' to be [*, N",
       "src and tgt should have 3 dimensions; src and tgt should have equal batch size; src and "
       "tgt should have same feature size as d_model"},
      {"backward: expected output * to require gradients",
       "element $1 of tensors does not require grad and does not have a grad_fn"},
      {"to require gradients where the result is written to 'out'",
       "out=... arguments don't support automatic differentiation, but one of the arguments "
       "requires grad"},
  };
  std::string out(text);
  for (const ErrorWords& row : rows) {
    if (row.add_to(out, text)) break;
  }
  return out;
}
}  // namespace detail

// The text is valid until the next call in this thread.
template <int lazy_>
const char* Error::what_without_backtrace() const noexcept {
  try {
    static thread_local std::string text;
    return (text = detail::with_words(what())).c_str();
  } catch (const std::bad_alloc&) {
    return what();
  }
}

}  // namespace lamella
