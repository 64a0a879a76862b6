/* An operator of Lamella's own, called from plain C. */
#include <stdio.h>
#include <string.h>

#include "lamella/abi/abi.h"

enum { kFloat = 6, kCpu = 0 };

static int failures = 0;
#define EXPECT(condition)                                                              \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      printf("builtin_test.c:%d: expected %s; last error: %s\n", __LINE__, #condition, \
             lamella_error_text());                                                    \
      ++failures;                                                                      \
    }                                                                                  \
  } while (0)

static lamella_value tensor_value(lamella_tensor* tensor) {
  lamella_value value;
  memset(&value, 0, sizeof(value));
  value.tag = LAMELLA_TENSOR;
  value.as.tensor = tensor;
  return value;
}

static void test_add(void) {
  int64_t sizes[1] = {4};
  float a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40};
  const lamella_operator* add = NULL;
  lamella_tensor *left = NULL, *right = NULL;
  lamella_value arguments[3], result;
  int i;
  EXPECT(lamella_find_operator("aten::add", "Tensor", &add) == LAMELLA_OK);
  if (add == NULL) return;
  EXPECT(lamella_tensor_from_blob(a, 1, sizes, NULL, kFloat, kCpu, -1, NULL, NULL, &left) == 0);
  EXPECT(lamella_tensor_from_blob(b, 1, sizes, NULL, kFloat, kCpu, -1, NULL, NULL, &right) == 0);
  arguments[0] = tensor_value(left);
  arguments[1] = tensor_value(right);
  memset(&arguments[2], 0, sizeof(arguments[2]));
  arguments[2].tag = LAMELLA_INT;
  arguments[2].as.i = 2;
  EXPECT(lamella_call_boxed(add, arguments, 3, &result, 1) == LAMELLA_OK);
  if (result.tag == LAMELLA_TENSOR) {
    for (i = 0; i < 4; ++i) EXPECT(((float*)result.as.tensor->data)[i] == a[i] + 2 * b[i]);
    lamella_value_release(&result);
  }
  lamella_value_release(&arguments[0]);
  lamella_value_release(&arguments[1]);
}

int main(void) {
  test_add();
  if (failures == 0) printf("ok\n");
  return failures;
}
