/* A library in plain C: it declares operators, registers kernels, finds and calls them, and reads
 * errors, through abi.h alone. Prints what differs and exits with the number of differences. */
#include <stdio.h>
#include <string.h>

#include "lamella/abi/abi.h"

enum { kFloat = 6, kCpu = 0 };
#define NO_KEY 0xffff

static int failures = 0;

static void expect(int ok, const char* what, int line) {
  if (ok) return;
  printf("pure_c_test.c:%d: expected %s; last error: %s\n", line, what, lamella_error_text());
  ++failures;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

static void expect_text(const char* text, int line) {
  if (strcmp(lamella_error_text(), text) == 0) return;
  printf("pure_c_test.c:%d: expected \"%s\", got \"%s\"\n", line, text, lamella_error_text());
  ++failures;
}
#define EXPECT_TEXT(text) expect_text(text, __LINE__)

/* scaled(Tensor self, float factor) -> Tensor, for contiguous float32 tensors. */
static lamella_status scaled(const lamella_kernel* kernel, const lamella_operator* op,
                             uint64_t key_set, const lamella_value* arguments,
                             lamella_value* returns) {
  const lamella_tensor* self = arguments[0].as.tensor;
  lamella_tensor* result = NULL;
  lamella_status status;
  int64_t i;
  (void)key_set;
  memset(returns, 0, sizeof(*returns));
  if (self->scalar_type != kFloat) {
    const char* text = "scaled: expected 'self' to be float32";
    return lamella_fail(LAMELLA_TYPE_ERROR, text, strlen(text));
  }
  status = lamella_tensor_empty(self->ndim, self->sizes, kFloat, kCpu, -1, &result);
  if (status != LAMELLA_OK) return status;
  for (i = 0; i < self->numel; ++i) {
    ((float*)result->data)[i] =
        ((const float*)self->data)[i] * (float)arguments[1].as.d + *(const float*)kernel->context;
  }
  returns[0].tag = LAMELLA_TENSOR;
  returns[0].as.tensor = result;
  return op->return_count == 1 ? LAMELLA_OK : LAMELLA_INTERNAL_ERROR;
}

static int disposed = 0;
static void dispose(void* context) {
  (void)context;
  ++disposed;
}
static int deleted = 0;
static void delete_blob(void* context) { deleted += *(int*)context; }

static lamella_value tensor_value(lamella_tensor* tensor) {
  lamella_value value;
  memset(&value, 0, sizeof(value));
  value.tag = LAMELLA_TENSOR;
  value.as.tensor = tensor;
  return value;
}
static lamella_value double_value(double number) {
  lamella_value value;
  memset(&value, 0, sizeof(value));
  value.tag = LAMELLA_DOUBLE;
  value.as.d = number;
  return value;
}

static lamella_library* open_library(int32_t kind, uint16_t key) {
  lamella_library* library = NULL;
  EXPECT(lamella_library_open(kind, "abi_c", key, __FILE__, __LINE__, &library) == LAMELLA_OK);
  return library;
}

static void test_call(void) {
  static float offset = 0.5f;
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  int64_t sizes[2] = {2, 3};
  int one = 1;
  uint16_t cpu = 0;
  lamella_library *definitions, *kernels;
  lamella_kernel_description description;
  lamella_argument_info info;
  const lamella_operator* op = NULL;
  lamella_tensor* self = NULL;
  lamella_value arguments[2], result;

  EXPECT(lamella_handshake(LAMELLA_ABI_MAJOR, LAMELLA_ABI_MINOR, sizeof(lamella_tensor),
                           sizeof(lamella_value), sizeof(lamella_operator),
                           "pure_c_test") == LAMELLA_OK);
  EXPECT(lamella_lookup_operator("abi_c::scaled", "", 0) == NULL);
  EXPECT(lamella_find_operator("abi_c::scaled", "", &op) == LAMELLA_ERROR);

  definitions = open_library(LAMELLA_LIBRARY_DEF, NO_KEY);
  EXPECT(lamella_library_define(definitions, "scaled(Tensor self, float factor) -> Tensor", NULL,
                                NULL, __FILE__, __LINE__) == LAMELLA_OK);
  EXPECT(lamella_dispatch_key_from_name("CPU", &cpu) == LAMELLA_OK);
  EXPECT(strcmp(lamella_dispatch_key_name(cpu), "CPU") == 0);
  kernels = open_library(LAMELLA_LIBRARY_IMPL, cpu);
  memset(&description, 0, sizeof(description));
  description.boxed = &scaled;
  description.context = &offset;
  description.dispose = &dispose;
  description.file = __FILE__;
  description.line = __LINE__;
  EXPECT(lamella_library_implement(kernels, "scaled", NO_KEY, &description) == LAMELLA_OK);

  EXPECT(lamella_find_operator("abi_c::scaled", "", &op) == LAMELLA_OK);
  EXPECT(op == lamella_lookup_operator("abi_c::scaled", "", 1));
  EXPECT(strcmp(lamella_operator_schema(op),
                "abi_c::scaled(Tensor self, float factor) -> Tensor") == 0);
  EXPECT(op->argument_count == 2 && op->return_count == 1);
  EXPECT(lamella_operator_argument(op, 0, 1, &info) == LAMELLA_OK);
  EXPECT(strcmp(info.name, "factor") == 0 && strcmp(info.type, "float") == 0);
  EXPECT(!info.tensor_like && !info.is_write && !info.has_default);
  EXPECT(lamella_operator_argument(op, 0, 2, &info) != LAMELLA_OK);

  EXPECT(lamella_tensor_from_blob(numbers, 2, sizes, NULL, kFloat, kCpu, -1, &delete_blob, &one,
                                  &self) == LAMELLA_OK);
  EXPECT(self->numel == 6 && self->strides[0] == 3 && self->strides[1] == 1);
  EXPECT((self->flags & LAMELLA_TENSOR_CONTIGUOUS) != 0 && self->data == numbers);

  arguments[0] = tensor_value(self);
  arguments[1] = double_value(2.0);
  EXPECT(lamella_call_boxed(op, arguments, 2, &result, 1) == LAMELLA_OK);
  EXPECT(result.tag == LAMELLA_TENSOR && result.as.tensor->numel == 6);
  EXPECT(((float*)result.as.tensor->data)[5] == 12.5f);
  EXPECT(self->references == 1);
  lamella_value_release(&result);
  EXPECT(result.tag == LAMELLA_NONE);

  /* A count that does not fit is refused before the kernel. */
  EXPECT(lamella_call_boxed(op, arguments, 1, &result, 1) != LAMELLA_OK);

  /* A kernel's own error arrives as it was set. */
  {
    lamella_tensor* longs = NULL;
    EXPECT(lamella_tensor_empty(2, sizes, 4, kCpu, -1, &longs) == LAMELLA_OK);
    arguments[0] = tensor_value(longs);
    EXPECT(lamella_call_boxed(op, arguments, 2, &result, 1) == LAMELLA_TYPE_ERROR);
    EXPECT_TEXT("scaled: expected 'self' to be float32");
    lamella_value_release(&arguments[0]);
  }

  /* Without its kernel there is an error that says so; without its definition, another. */
  arguments[0] = tensor_value(self);
  EXPECT(disposed == 0);
  lamella_library_close(kernels);
  EXPECT(disposed == 1);
  EXPECT(lamella_call_boxed(op, arguments, 2, &result, 1) == LAMELLA_NOT_IMPLEMENTED);
  lamella_library_close(definitions);
  EXPECT(lamella_call_boxed(op, arguments, 2, &result, 1) == LAMELLA_ERROR);
  EXPECT(strstr(lamella_error_text(), "abi_c::scaled") != NULL);
  EXPECT(lamella_lookup_operator("abi_c::scaled", "", 1) == NULL);
  EXPECT(lamella_operator_schema(op) == NULL);

  EXPECT(deleted == 0);
  lamella_value_release(&arguments[0]);
  EXPECT(deleted == 1);
}

static void test_values(void) {
  lamella_value list, copy;
  EXPECT(lamella_value_allocate(LAMELLA_INT_LIST, 3, &list) == LAMELLA_OK);
  EXPECT(list.tag == LAMELLA_INT_LIST && list.size == 3 && list.flags == LAMELLA_VALUE_BLOCK);
  ((int64_t*)list.as.pointer)[2] = 7;
  EXPECT(((int64_t*)list.as.pointer)[0] == 0);
  EXPECT(((lamella_block*)list.as.pointer - 1)->references == 1);
  EXPECT(lamella_value_copy(&list, &copy) == LAMELLA_OK);
  EXPECT(copy.size == 3 && ((int64_t*)copy.as.pointer)[2] == 7);
  lamella_value_release(&list);
  EXPECT(((int64_t*)copy.as.pointer)[2] == 7);
  lamella_value_release(&copy);
  EXPECT(copy.tag == LAMELLA_NONE);

  /* A span is copied, so that the copy outlives it. */
  {
    double numbers[2] = {1.5, 2.5};
    memset(&list, 0, sizeof(list));
    list.tag = LAMELLA_DOUBLE_LIST;
    list.size = 2;
    list.as.pointer = numbers;
    EXPECT(lamella_value_copy(&list, &copy) == LAMELLA_OK);
    numbers[1] = 0;
    EXPECT(((double*)copy.as.pointer)[1] == 2.5);
    lamella_value_release(&copy);
  }
}

static void test_views_and_versions(void) {
  int64_t sizes[2] = {2, 3}, turned[2] = {3, 2}, strides[2] = {1, 3}, far[1] = {7}, unit[1] = {1};
  lamella_tensor *base = NULL, *view = NULL;
  lamella_value value;
  EXPECT(lamella_tensor_empty(2, sizes, kFloat, kCpu, -1, &base) == LAMELLA_OK);
  EXPECT(lamella_tensor_as_strided(base, 2, turned, strides, 0, &view) == LAMELLA_OK);
  EXPECT(view->data == base->data && view->sizes[0] == 3 && view->strides[1] == 3);
  EXPECT((view->flags & LAMELLA_TENSOR_CONTIGUOUS) == 0);
  EXPECT(lamella_tensor_version(view) == 0);
  lamella_tensor_bump_version(base);
  EXPECT(lamella_tensor_version(view) == 1);
  EXPECT(lamella_tensor_storage_bytes(view) >= 6 * sizeof(float));
  EXPECT(lamella_tensor_storage_data(view) == base->data);
  value = tensor_value(base);
  lamella_value_release(&value);
  EXPECT(lamella_tensor_lock(view) == 1);
  EXPECT(view->references == 2);
  value = tensor_value(view);
  lamella_value_release(&value);
  EXPECT(view->references == 1);
  {
    lamella_tensor* bad = NULL;
    EXPECT(lamella_tensor_as_strided(view, 1, far, unit, 0, &bad) != LAMELLA_OK && bad == NULL);
  }
  value = tensor_value(view);
  lamella_value_release(&value);
}

static void test_handshake(void) {
  EXPECT(lamella_handshake(2, 0, sizeof(lamella_tensor), sizeof(lamella_value),
                           sizeof(lamella_operator), "libtoo_new.so") == LAMELLA_ERROR);
  EXPECT_TEXT(
      "libtoo_new.so: was built for Lamella ABI 2.0, this is 1.1; build it again with this "
      "version's headers");
  EXPECT(lamella_handshake(1, 99, sizeof(lamella_tensor), sizeof(lamella_value),
                           sizeof(lamella_operator), "libminor.so") == LAMELLA_ERROR);
  EXPECT_TEXT(
      "libminor.so: was built for Lamella ABI 1.99, this is 1.1; build it again with this "
      "version's headers");
  EXPECT(lamella_handshake(1, 0, sizeof(lamella_tensor), 24, sizeof(lamella_operator),
                           "libwide.so") == LAMELLA_ERROR);
  EXPECT_TEXT(
      "libwide.so: its structures do not fit this version (tensor 96 bytes for 96, value 24 for "
      "16, operator 2128 for 2128); build it again with this version's headers");
}

static void test_deferred(void) {
  EXPECT(lamella_raise_deferred() == LAMELLA_OK);
  lamella_defer_failure("first: went wrong", "a.cpp", 3);
  lamella_defer_failure("second: went wrong", "b.cpp", 4);
  EXPECT(lamella_raise_deferred() == LAMELLA_ERROR);
  EXPECT_TEXT("first: went wrong (a.cpp:3)\nsecond: went wrong (b.cpp:4)");
  EXPECT(lamella_raise_deferred() == LAMELLA_OK);
}

int main(void) {
  test_handshake();
  test_call();
  test_values();
  test_views_and_versions();
  test_deferred();
  if (failures == 0) printf("ok\n");
  return failures;
}
