// Reading of default values. Internal to lamella/schema.
#pragma once

#include "lamella/schema/lexer.h"
#include "lamella/schema/schema.h"

namespace lamella::detail {

// Reads the default that `in` stands on, as a value of `type`. Throws Failure.
DefaultValue parse_default(Cursor& in, SchemaType type);

}  // namespace lamella::detail
