// Includes all headers of builder functions.
#pragma once
#include "lamella/graph/builder/calls.h"
#include "lamella/graph/builder/collective.h"
#include "lamella/graph/builder/constant.h"
#include "lamella/graph/builder/contraction.h"
#include "lamella/graph/builder/control.h"
#include "lamella/graph/builder/data_movement.h"
#include "lamella/graph/builder/elementwise.h"
#include "lamella/graph/builder/random.h"
#include "lamella/graph/builder/reduction.h"
