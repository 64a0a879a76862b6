// Objects of registered classes as Python sees them.
#pragma once
#include "lamella/schema/type.h"
#include "python/src/object.h"

namespace lamella::python {

extern PyTypeObject ScriptObjectType;

// Whether it is of a registered class.
inline bool is_of_class(const lamella_object* object) {
  return object->reserved == LAMELLA_OBJECT_OF_CLASS;
}
// "__torch__.torch.classes.ns.Name" of such an object.
inline const char* class_name_of(const lamella_object* object) {
  return reinterpret_cast<const lamella_class_object*>(object)->class_name;
}
// The object of a ScriptObject, borrowed; NULL for other objects and for classes other than `type`.
lamella_object* script_object_of(PyObject* object, SchemaType type);
// A Python object for it; takes over one reference.
PyObject* script_object(lamella_object* owned);

}  // namespace lamella::python
