// Lazy conjugates and negatives: when they are resolved, when they are kept, and the memory behind
// them.
#include <gtest/gtest.h>

#include "lamella/api/functions.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/library.h"
#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

using Z = complex<double>;

Tensor numbers() {
  Tensor z = empty({2}, TensorOptions().dtype(kComplexDouble));
  z.data_ptr<Z>()[0] = Z(1, 2);
  z.data_ptr<Z>()[1] = Z(3, -4);
  return z;
}
Z at(const Tensor& z, int64_t i) { return z.select(0, i).item().toComplexDouble(); }

TEST(Conj, IsAViewWithAFlag) {
  Tensor z = numbers();
  Tensor c = z.conj();
  EXPECT_TRUE(c.is_conj());
  EXPECT_EQ(c.impl()->storage, z.impl()->storage);
  EXPECT_EQ(at(c, 0), Z(1, -2));
  EXPECT_FALSE(c.conj().is_conj());
  EXPECT_EQ(at(c.conj(), 1), Z(3, -4));
  EXPECT_TRUE(c.select(0, 1).is_conj());
  EXPECT_TRUE(c.unsqueeze(0).mH().is_conj() == false);
  Tensor real = ones({2});
  EXPECT_TRUE(real.conj().is_same(real));
}

TEST(Conj, OnlyLazyTensorsHaveTheKey) {
  Tensor z = numbers();
  uint64_t bits = DispatchKeySet(DispatchKey::Conjugate).raw_repr() |
                  DispatchKeySet(DispatchKey::Negative).raw_repr();
  EXPECT_EQ(z.key_set() & bits, 0u);
  EXPECT_EQ(z.conj().key_set() & bits, DispatchKeySet(DispatchKey::Conjugate).raw_repr());
  EXPECT_EQ(imag(z.conj()).key_set() & bits, DispatchKeySet(DispatchKey::Negative).raw_repr());
  EXPECT_EQ(z.conj().conj().key_set() & bits, 0u);
  EXPECT_EQ(z.conj().resolve_conj().key_set() & bits, 0u);
}

TEST(Conj, ResolvesForKernels) {
  Tensor z = numbers();
  Tensor sum = z.conj() + z;
  EXPECT_FALSE(sum.is_conj());
  EXPECT_EQ(at(sum, 0), Z(2, 0));
  EXPECT_EQ(at(z, 0), Z(1, 2));
  EXPECT_EQ(at(z.conj().clone(), 1), Z(3, 4));
  EXPECT_FALSE(z.conj().clone().is_conj());
  EXPECT_EQ(at(stack({z.conj(), z}).select(0, 0), 1), Z(3, 4));
}

TEST(Conj, WritesReachTheMemory) {
  Tensor z = numbers();
  Tensor c = z.conj();
  Tensor& same = c.mul_(Scalar(Z(0, 1)));
  EXPECT_TRUE(same.is_same(c));
  EXPECT_TRUE(c.is_conj());
  // (1 - 2i) * i = 2 + i, whose conjugate stands in memory.
  EXPECT_EQ(at(c, 0), Z(2, 1));
  EXPECT_EQ(at(z, 0), Z(2, -1));
  c.copy_(z);
  EXPECT_EQ(at(z, 0), Z(2, 1));
  Tensor out = numbers().conj();
  add_out(out, z, z);
  EXPECT_TRUE(out.is_conj());
  EXPECT_EQ(at(out, 0), at(z + z, 0));
}

TEST(Conj, FailuresLeaveTheMemory) {
  Tensor z = numbers();
  Tensor c = z.conj();
  EXPECT_THROW(c.add_(ones({3})), Error);
  EXPECT_EQ(at(z, 0), Z(1, 2));
  EXPECT_EQ(at(c, 0), Z(1, -2));
}

TEST(Conj, ImaginaryPartIsNegative) {
  Tensor z = numbers();
  Tensor part = imag(z.conj());
  EXPECT_TRUE(part.is_neg());
  EXPECT_EQ(part.select(0, 0).item().toDouble(), -2);
  part.add_(10);
  EXPECT_EQ(at(z, 0), Z(1, -8));
  EXPECT_FALSE(part.resolve_neg().is_neg());
  EXPECT_EQ(real(z.conj()).select(0, 1).item().toDouble(), 3);
}

TEST(Conj, AnOperatorMayTakeTheFlag) {
  Library library(Library::DEF, "takes_conj", std::nullopt, "test.cpp", 1);
  library.def("flag(Tensor x) -> bool");
  library.def("plain(Tensor x) -> bool");
  auto is_lazy = [](const Tensor& x) { return x.is_conj(); };
  library.impl("flag", dispatch(DispatchKey::CPU, is_lazy));
  library.impl("plain", dispatch(DispatchKey::CPU, is_lazy));
  library.impl("flag", dispatch(DispatchKey::Conjugate, CppFunction::makeFallthrough()));
  auto call = [](const char* name, const Tensor& x) {
    return Dispatcher::singleton().findSchemaOrThrow(name, "").typed<bool(const Tensor&)>().call(x);
  };
  EXPECT_TRUE(call("takes_conj::flag", numbers().conj()));
  EXPECT_FALSE(call("takes_conj::plain", numbers().conj()));
}

}  // namespace
}  // namespace lamella
