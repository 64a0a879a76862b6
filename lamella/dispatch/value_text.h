// Values as text, in the notation for arguments of a call. Internal to Lamella.
#pragma once
#include <optional>
#include <string>

#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"
#include "lamella/core/tensor_base.h"
#include "lamella/schema/type.h"

namespace lamella {

// What a text of values leaves to its reader.
class LAMELLA_PRIVATE_API ValueWords {
 public:
  virtual ~ValueWords() = default;
  // A tensor; null where the value holds an undefined one.
  virtual std::string tensor(lamella_tensor* tensor) = 0;
  // What calls seldom have: tuples, dictionaries, lists of tensors, generators, objects.
  virtual std::string other(const lamella_value& value, SchemaType type) = 0;
};

// None, 2, 2.5, 1.0+2.0j, True, "text", float32, cuda:1, [1, 2]. Numbers read back as they were;
// integers of dtypes, layouts and memory formats are words, where the type says so.
LAMELLA_PRIVATE_API std::string value_text(const lamella_value& value, SchemaType type,
                                           ValueWords& words);
// The number in a tensor without dimensions; nothing for a dtype other than float32, float64,
// int64, bool, complex64 and complex128.
LAMELLA_PRIVATE_API std::optional<std::string> number_text(const TensorBase& tensor);

}  // namespace lamella
