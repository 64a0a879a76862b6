// Kept packed weights: addresses that C++ code obtained, and the state of a storage.
#include "lamella/core/kept_forms.h"

#include "lamella/api/functions.h"
#include "lamella/core/accessor.h"
#include "lamella/core/version_counter.h"
#include "tests/core/testing.h"

namespace lamella {
namespace {

constexpr int64_t kRows = 24, kInner = 160, kWidth = 96;

// The bytes that three products with the weight made the library keep.
int64_t kept_by(const Tensor& x, const Tensor& w) {
  int64_t before = kept_form_bytes();
  for (int i = 0; i < 3; ++i) lamella::linear(x, w);
  return kept_form_bytes() - before;
}
bool is_right(const Tensor& x, const Tensor& w) {
  return lamella::linear(x, w).equal(lamella::linear(x, w.clone()));
}

struct Operands {
  Tensor x = lamella::randn({kRows, kInner}), w = lamella::randn({kWidth, kInner});
};

TEST(KeptForms, ReadingLeavesThem) {
  Operands o;
  EXPECT_GT(kept_by(o.x, o.w), 0);
  EXPECT_EQ(o.w.const_data_ptr<float>(), o.w.const_data_ptr());
  EXPECT_EQ(o.w.storage_impl()->is_exposed, 0);
  EXPECT_EQ(kept_by(o.x, o.w), 0);
  EXPECT_TRUE(is_right(o.x, o.w));
}

TEST(KeptForms, AddressesForWritingEndThem) {
  using Give = void (*)(const Tensor&, float**);
  const Give ways[] = {
      [](const Tensor& w, float** to) { *to = w.data_ptr<float>(); },
      [](const Tensor& w, float** to) { *to = static_cast<float*>(w.data_ptr()); },
      [](const Tensor& w, float** to) { *to = w.mutable_data_ptr<float>(); },
      [](const Tensor& w, float** to) { *to = static_cast<float*>(w.mutable_data_ptr()); },
      [](const Tensor& w, float** to) { *to = &w.accessor<float, 2>()[0][0]; },
      [](const Tensor& w, float** to) { *to = w.view({-1}).data_ptr<float>(); },
      [](const Tensor& w, float** to) {
        lamella_tensor_expose(w.impl());
        *to = static_cast<float*>(w.impl()->data);
      },
      [](const Tensor& w, float** to) {
        *to = static_cast<float*>(lamella_tensor_storage_data(w.impl()));
      },
  };
  for (Give give : ways) {
    Operands o;
    EXPECT_GT(kept_by(o.x, o.w), 0);
    float* data = nullptr;
    give(o.w, &data);
    for (int i = 0; i < 3; ++i) {
      data[i] += 1000.0f;
      EXPECT_TRUE(is_right(o.x, o.w));
    }
    EXPECT_LE(kept_by(o.x, o.w), 0);
  }
}

TEST(KeptForms, ANewStorageBeginsAnew) {
  Operands o;
  o.w.data_ptr<float>()[0] = 1;
  EXPECT_EQ(kept_by(o.x, o.w), 0);
  Tensor other = lamella::randn({kWidth, kInner});
  o.w.set_(other);
  EXPECT_GT(kept_by(o.x, o.w), 0);
  o.w.data_ptr<float>()[0] = 1;  // the tensor tells again
  EXPECT_LE(kept_by(o.x, o.w), 0);
  EXPECT_TRUE(is_right(o.x, other));
}

TEST(KeptForms, TheBytesGoWithTheStorage) {
  int64_t before = kept_form_bytes();
  {
    Operands o;
    EXPECT_GE(kept_by(o.x, o.w), kWidth * kInner * 4);
  }
  EXPECT_EQ(kept_form_bytes(), before);
}

TEST(KeptForms, WritesThatCountApart) {
  Operands o;
  kept_by(o.x, o.w);
  Tensor apart = Tensor(make_detached(o.w));
  count_apart(TensorImpl::of(apart), 0);
  uint32_t version = o.w._version();
  apart.add_(1);
  EXPECT_EQ(o.w._version(), version);
  EXPECT_TRUE(is_right(o.x, o.w));
}

}  // namespace
}  // namespace lamella
