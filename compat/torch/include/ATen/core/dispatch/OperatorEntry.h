// Part of the dispatcher's header.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
