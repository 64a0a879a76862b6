// Everything of torch:: that Lamella has, and what code includes through it of the standard
// library.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/TensorIndexing.h>
#include <ATen/core/Dict.h>
#include <ATen/core/op_registration/op_registration.h>
#include <c10/util/Logging.h>
#include <torch/autograd.h>
#include <torch/fft.h>
#include <torch/library.h>
#include <torch/linalg.h>
#include <torch/special.h>
#include <torch/standard_headers.h>
#include <torch/types.h>
#include <torch/version.h>
