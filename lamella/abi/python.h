/* What the Python package lends to extension modules that are built outside of it: its objects for
 * tensors and what describes them. Pure C over pointers to Python objects. A capsule named
 * lamella._C._extension_table holds one; all functions want the GIL.
 */
#ifndef LAMELLA_ABI_PYTHON_H_
#define LAMELLA_ABI_PYTHON_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAMELLA_PYTHON_TABLE_NAME "lamella._C._extension_table"

/* Later versions add members at the end, and `size` tells which there are. Functions that read an
 * object return 1 where it is of the kind, 0 where it is not, and set no Python error. */
typedef struct lamella_python_table {
  size_t size;
  /* A new reference to the object of a tensor, None for NULL; takes over one reference of it. */
  struct _object* (*wrap_tensor)(lamella_tensor* owned);
  /* Borrowed. */
  int (*read_tensor)(struct _object* object, lamella_tensor** tensor);
  struct _object* (*wrap_dtype)(uint8_t scalar_type);
  int (*read_dtype)(struct _object* object, uint8_t* scalar_type);
  struct _object* (*wrap_device)(uint8_t device_type, int8_t index);
  int (*read_device)(struct _object* object, uint8_t* device_type, int8_t* index);
  struct _object* (*wrap_layout)(uint8_t layout);
  int (*read_layout)(struct _object* object, uint8_t* layout);
  struct _object* (*wrap_memory_format)(uint8_t format);
  int (*read_memory_format)(struct _object* object, uint8_t* format);
  /* Takes over one reference; reading borrows. */
  struct _object* (*wrap_generator)(lamella_object* owned);
  int (*read_generator)(struct _object* object, lamella_object** generator);
  /* Sets the Python exception for the status of an error and returns NULL. */
  struct _object* (*raise)(lamella_status status, const char* text);
} lamella_python_table;

#ifdef __cplusplus
}
#endif

#endif
