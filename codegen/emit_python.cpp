// What Python sees: a table of names for the extension module, and type stubs.
#include "codegen/cpp.h"
#include "codegen/templates.h"

namespace lamella::codegen {

void emit_python(const Model&, const EmitOptions&, Files&) {}

}  // namespace lamella::codegen
