// OperatorRows: operators that a generator declared in tables. Internal to Lamella.
//
// Note [Operators without an entry]
//   The library declares some 1,400 operators, of which a program calls a few. An entry takes more
//   than a kilobyte and a dozen allocations, so making all entries would be most of the cost of
//   loading the library. Their schemas, kernels and derivatives are constant tables, and loading
//   records only where the rows of each name are. An operator's entry is made when the operator is
//   looked up, when a registration adds to it, or when all operators are listed. The delay is not
//   observable: a row holds the same facts as an entry, the operator's place in the order is
//   reserved, and plans are derived from entries only.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/abi/autograd.h"
#include "lamella/core/array_ref.h"
#include "lamella/core/macros.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella {

struct SchemaRow {
  const char* schema;  // without its namespace
  const char* tags;    // comma-separated, or null
  uint32_t line;       // of the declaration
};

struct KernelRow {
  const char* name;  // aten::add.Tensor
  lamella_typed_function typed;
  lamella_boxed_function boxed;
  int32_t line;  // counted from the operator's declaration
};

struct DerivativeRow {
  const char* name;  // aten::add.Tensor
  const lamella_derivative* derivative;
  uint32_t line;
};

// The rows of operators that are not entered yet. Everything but left() runs under the registry's
// mutex. Rows must live as long as the process; the files they came from are named with each table.
class LAMELLA_PRIVATE_API OperatorRows {
 public:
  struct Kernel {
    const KernelRow* row;
    const char* file;
    DispatchKey key;
    uint32_t next;  // of the same operator, in the order they were added; kNone: the last one
  };
  struct Operator {
    std::string_view name_space, name, overload;  // "aten", "add", "Tensor"
    const SchemaRow* schema;
    const char* file;
    uint32_t place;  // among all operators of the process
    uint32_t next;   // with the same hash
    uint32_t first_kernel, last_kernel;
    const DerivativeRow* derivative;
    const char* derivative_file;
    bool entered;
  };
  static constexpr uint32_t kNone = ~uint32_t{0};

  // `first_place`: of the first row.
  void add_schemas(const char* name_space, const char* file, ArrayRef<SchemaRow> rows,
                   uint32_t first_place);
  // False where the operator of the name has no row, or is entered: the registry has to be told.
  bool add_kernel(DispatchKey key, const char* file, const KernelRow& row);
  bool add_derivative(const char* file, const DerivativeRow& row);

  // Whether some rows are not entered. Wait-free.
  bool left() const { return left_.load(std::memory_order_acquire) != 0; }
  // The operator "aten::add" "Tensor" if it has a row that is not entered; null otherwise.
  Operator* find(std::string_view qualified, std::string_view overload);
  // The same for each overload of "aten::add", in the order of their rows.
  std::vector<Operator*> family(std::string_view qualified);
  std::vector<Operator*> all();
  const Kernel& kernel(uint32_t index) const { return kernels_[index]; }
  // To be called when its entry is in the registry.
  void set_entered(Operator* op);

 private:
  static constexpr size_t kBuckets = 1 << 12;
  uint32_t& bucket_of(std::string_view name);
  Operator* find_full(std::string_view full);

  std::vector<Operator> operators_;
  std::vector<Kernel> kernels_;
  std::vector<uint32_t> buckets_;  // of the operators' names, last row first
  std::atomic<size_t> left_{0};
};

// Registers rows of Lamella's own operators; schemas first, before anything else has their names.
// The schemas were checked by the generator, so they are parsed when their operator is first used.
// `file` is where the declarations stand.
void register_schemas(const char* name_space, const char* file, ArrayRef<SchemaRow> rows);
void register_kernels(DispatchKey key, const char* file, ArrayRef<KernelRow> rows);
void register_derivatives(const char* file, ArrayRef<DerivativeRow> rows);

}  // namespace lamella
