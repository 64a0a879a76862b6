// torch::fft::fft and the other transforms. Their kernels are in Lamella's library of less common
// operators, which is loaded on the first call of one of them.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

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
LAMELLA_FFT(fft, std::optional<int64_t>, int64_t, -1)
LAMELLA_FFT(ifft, std::optional<int64_t>, int64_t, -1)
LAMELLA_FFT(rfft, std::optional<int64_t>, int64_t, -1)
LAMELLA_FFT(irfft, std::optional<int64_t>, int64_t, -1)
LAMELLA_FFT(hfft, std::optional<int64_t>, int64_t, -1)
LAMELLA_FFT(ihfft, std::optional<int64_t>, int64_t, -1)
LAMELLA_FFT(fftn, lamella::OptionalIntArrayRef, lamella::OptionalIntArrayRef, std::nullopt)
LAMELLA_FFT(ifftn, lamella::OptionalIntArrayRef, lamella::OptionalIntArrayRef, std::nullopt)
LAMELLA_FFT(rfftn, lamella::OptionalIntArrayRef, lamella::OptionalIntArrayRef, std::nullopt)
LAMELLA_FFT(irfftn, lamella::OptionalIntArrayRef, lamella::OptionalIntArrayRef, std::nullopt)
#undef LAMELLA_FFT
}  // namespace torch::fft
