// The autograd modes of a thread and their guards.
#include <thread>

#include "tests/layers/autograd/testing.h"

namespace lamella {
namespace {

TEST(Modes, NoGrad) {
  Tensor x = leaf({1});
  EXPECT_TRUE(GradMode::is_enabled());
  {
    NoGradGuard guard;
    EXPECT_FALSE(GradMode::is_enabled());
    EXPECT_FALSE((times(x, 2)).requires_grad());
    {
      AutoGradMode enabled(true);
      EXPECT_TRUE(GradMode::is_enabled());
      EXPECT_TRUE((times(x, 2)).requires_grad());
    }
    EXPECT_FALSE(GradMode::is_enabled());
    // Another thread has modes of its own.
    bool elsewhere = false;
    std::thread([&] { elsewhere = GradMode::is_enabled(); }).join();
    EXPECT_TRUE(elsewhere);
  }
  EXPECT_TRUE(GradMode::is_enabled());
  GradMode::set_enabled(false);
  EXPECT_FALSE((times(x, 2)).requires_grad());
  GradMode::set_enabled(true);
  EXPECT_TRUE((times(x, 2)).requires_grad());
}

TEST(Modes, GuardsEndWithExceptions) {
  try {
    NoGradGuard guard;
    InferenceMode inference;
    throw 1;
  } catch (int) {
  }
  EXPECT_TRUE(GradMode::is_enabled());
  EXPECT_FALSE(InferenceMode::is_enabled());
}

TEST(Modes, Inference) {
  Tensor x = leaf({1});
  Tensor made;
  {
    InferenceMode guard;
    EXPECT_TRUE(InferenceMode::is_enabled());
    EXPECT_FALSE(GradMode::is_enabled());
    made = times(x, 2);
    EXPECT_TRUE(made.is_inference());
    EXPECT_FALSE(made.requires_grad());
    EXPECT_TRUE(ones({2}).is_inference());
    {
      InferenceMode off(false);
      EXPECT_FALSE(InferenceMode::is_enabled());
      EXPECT_TRUE(GradMode::is_enabled());
      Tensor y = times(x, 2);
      EXPECT_TRUE(y.requires_grad());
      EXPECT_FALSE(y.is_inference());
    }
    EXPECT_TRUE(InferenceMode::is_enabled());
    InferenceMode same(true);
  }
  EXPECT_FALSE(InferenceMode::is_enabled());
  EXPECT_FALSE((times(x, 2)).is_inference());
  EXPECT_FALSE((times(made, 2)).requires_grad());
  EXPECT_THROW(made.requires_grad_(), Error);
}

TEST(Modes, BelowAutograd) {
  Tensor x = leaf({1});
  {
    AutoDispatchBelowAutograd below;
    EXPECT_FALSE((times(x, 2)).requires_grad());
    { NoGradGuard guard; }
    // The end of the inner guard leaves the outer one in force.
    EXPECT_FALSE((times(x, 2)).requires_grad());
    {
      AutoGradMode guard(true);
      EXPECT_FALSE((times(x, 2)).requires_grad());
    }
    EXPECT_FALSE((times(x, 2)).requires_grad());
  }
  EXPECT_TRUE((times(x, 2)).requires_grad());
  {
    NoGradGuard guard;
    { AutoDispatchBelowAutograd below; }
    EXPECT_FALSE((times(x, 2)).requires_grad());
  }
  EXPECT_TRUE((times(x, 2)).requires_grad());
}

TEST(Modes, Anomaly) {
  using autograd::AnomalyMode;
  EXPECT_FALSE(AnomalyMode::is_enabled());
  {
    autograd::DetectAnomalyGuard guard;
    EXPECT_TRUE(AnomalyMode::is_enabled() && AnomalyMode::should_check_nan());
    autograd::DetectAnomalyGuard quiet(false);
    EXPECT_TRUE(AnomalyMode::is_enabled() && !AnomalyMode::should_check_nan());
  }
  EXPECT_FALSE(AnomalyMode::is_enabled());
  AnomalyMode::set_enabled(true, false);
  EXPECT_TRUE(AnomalyMode::is_enabled() && !AnomalyMode::should_check_nan());
  AnomalyMode::set_enabled(false);
  EXPECT_FALSE(AnomalyMode::is_enabled());
  EXPECT_TRUE(AnomalyMode::should_check_nan());
}

TEST(Modes, AnomalyFindsNaN) {
  autograd::DetectAnomalyGuard guard;
  Tensor x = leaf({1000});
  Tensor y = times(x.exp(), 0);  // 0 * infinity
  EXPECT_THROW(y.backward(), Error);
}

}  // namespace
}  // namespace lamella
