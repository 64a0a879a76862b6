// c10::List, and lists of any values.
#pragma once
#include <ATen/core/ivalue.h>
