// torch::fft::fft and the other transforms. Their kernels are in Lamella's library of less common
// operators, which is loaded on the first call of one of them.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

#include "lamella/core/for_each.h"

namespace torch::fft {
using Norm = std::optional<std::string>;
#define LAMELLA_FFT(name, Size, Dim, dim_default)                                               \
  LAMELLA_LAZY lamella::Tensor name(const lamella::Tensor& self, Size n = std::nullopt,         \
                                    Dim dim = dim_default, const Norm& norm = std::nullopt) {   \
    static const auto op = lamella::Dispatcher::singleton()                                     \
                               .findSchemaOrThrow("aten::fft_" #name, "")                       \
                               .typed<lamella::Tensor(const lamella::Tensor&, Size, Dim,        \
                                                      std::optional<std::string_view>)>();      \
    return op.call(self, n, dim, norm ? std::optional<std::string_view>(*norm) : std::nullopt); \
  }
#define LAMELLA_FFT_1D(name) LAMELLA_FFT(name, std::optional<int64_t>, int64_t, -1)
#define LAMELLA_FFT_ND(name) \
  LAMELLA_FFT(name, lamella::OptionalIntArrayRef, lamella::OptionalIntArrayRef, std::nullopt)
LAMELLA_FOR_EACH(LAMELLA_FFT_1D, fft, ifft, rfft, irfft, hfft, ihfft)
LAMELLA_FOR_EACH(LAMELLA_FFT_ND, fftn, ifftn, rfftn, irfftn)
#undef LAMELLA_FFT_1D
#undef LAMELLA_FFT_ND
#undef LAMELLA_FFT
}  // namespace torch::fft
