// Convolutions over 1 to 3 spatial dimensions: float32 in liblamella_blas.so, other dtypes as
// matrix products here.
#pragma once
#include "lamella/kernels/blas/blas.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// src is [batch][in_channels][in...], weight [out_channels][in_channels / groups][kernel...], dst
// [batch][out_channels][out...]. All are contiguous; src and dst with the channels innermost if
// `channels_last`. A transposed convolution is the backward of one, with src and dst exchanged.
struct Convolution {
  ScalarType dtype;
  int ndim;  // spatial
  bool channels_last = false;
  int64_t batch, groups, in_channels, out_channels;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

// dst from the others. bias has one number for each of the out_channels, or is undefined.
void convolution_forward(const char* op, const Convolution& c, const Tensor& src,
                         const Tensor& weight, const Tensor& bias, const Tensor& dst);
// src from the others.
void convolution_backward_data(const char* op, const Convolution& c, const Tensor& dst,
                               const Tensor& weight, const Tensor& src);
// weight from the others.
void convolution_backward_weight(const char* op, const Convolution& c, const Tensor& src,
                                 const Tensor& dst, const Tensor& weight);

// Computes a float32 convolution on the addresses in `problem`; `storage` as in
// library_convolution(). Uses the algorithms of convolution_forward() and its gradients where the
// layout fits and they have one of their own; otherwise calls liblamella_blas.so.
void convolution_in_place(const char* op, const lamella_convolution& problem, Storage* storage);
// Calls liblamella_blas.so on the threads of the kernels' pool. `storage` is the weights' storage
// if they may be constants, else null: Note [What is kept with a storage].
void library_convolution(const char* op, const lamella_convolution& problem, Storage* storage);

// The first gathers the patches that the kernel sees in one sample, one in each column; the second
// sums such columns into a sample. columns is [channels * taps][outputs], with c.in_channels
// channels.
void convolution_to_columns(const char* op, const Convolution& c, const void* src, void* columns);
void convolution_from_columns(const char* op, const Convolution& c, const void* columns, void* src);

// True if liblamella_blas.so computes the convolution; it then also accepts channels_last.
bool convolution_by_library(const Convolution& c);

}  // namespace lamella::native
