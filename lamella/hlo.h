// HLO: modules as text and in memory, building them, and running them. Link with Lamella::graph.
#pragma once
#include "lamella/graph/builder/builder.h"
#include "lamella/graph/builder/functions.h"
#include "lamella/graph/builder/literal_util.h"
#include "lamella/graph/builder/shape_util.h"
#include "lamella/graph/client/client.h"
#include "lamella/graph/client/module_operator.h"
#include "lamella/graph/client/operator_op.h"
#include "lamella/graph/hlo/module.h"
