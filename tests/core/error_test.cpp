// Errors: their text, their kinds, and their way through the C ABI.
#include "lamella/core/error.h"

#include <new>
#include <stdexcept>
#include <thread>

#include "lamella/core/device.h"
#include "lamella/core/scalar_type.h"
#include "testing.h"

namespace {

using namespace lamella;

enum class Plain { A = 3 };

TEST(Error, TextOfParts) {
  EXPECT_EQ(str("a", 1, -2, 'c', true, 1.5, 2.0f, std::string("s")), "a1-2ctrue1.52s");
  EXPECT_EQ(str(int64_t{INT64_MIN}, " ", UINT64_MAX, " ", uint8_t{7}),
            "-9223372036854775808 18446744073709551615 7");
  EXPECT_EQ(str(1e-7, " ", 123456789.0), "1e-07 1.23457e+08");
  EXPECT_EQ(str(kFloat, " ", Device("cuda:1"), " ", Plain::A), "float32 cuda:1 3");
  EXPECT_EQ(str(std::optional<int64_t>(), " ", std::optional<int64_t>(4)), "None 4");
  EXPECT_EQ(str(std::vector<double>{1, 2.5}), "[1, 2.5]");
  EXPECT_EQ(str(), "");
}

TEST(Error, Checks) {
  int n = 3;
  LAMELLA_CHECK(n == 3, "not reached");
  EXPECT_EQ(error_of([&] { LAMELLA_CHECK(n == 4, "op: expected ", 4, ", got ", n); }),
            "op: expected 4, got 3");
  EXPECT_EQ(error_of([&] { LAMELLA_CHECK(n == 4); }), "expected n == 4");
  EXPECT_EQ(error_of<IndexError>([] { LAMELLA_CHECK_INDEX(false, "i"); }), "i");
  EXPECT_EQ(error_of<ValueError>([] { LAMELLA_CHECK_VALUE(false, "v"); }), "v");
  EXPECT_EQ(error_of<TypeError>([] { LAMELLA_CHECK_TYPE(false, "t"); }), "t");
  EXPECT_EQ(error_of<NotImplementedError>([] { LAMELLA_CHECK_NOT_IMPLEMENTED(false, "n"); }), "n");
  EXPECT_EQ(error_of<LinAlgError>([] { LAMELLA_CHECK_LINALG(false, "l"); }), "l");
  EXPECT_EQ(error_of([] { LAMELLA_ERROR("always ", 1); }), "always 1");
  bool reached = false;
  if (n == 4)
    LAMELLA_CHECK(false, "an if without braces");
  else
    reached = true;
  EXPECT_TRUE(reached);
}

TEST(Error, InternalAssertAsksForAReport) {
  std::string text = error_of<InternalError>([] { LAMELLA_INTERNAL_ASSERT(1 == 2, "got ", 5); });
  EXPECT_NE(text.find("error_test.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find(": expected 1 == 2. got 5. This is a bug in Lamella; please report it."),
            std::string::npos)
      << text;
}

template <class E>
lamella_status status_of(const E& e) {
  try {
    throw e;
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

TEST(Error, AcrossTheAbi) {
  EXPECT_EQ(status_of(Error("e")), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(), "e");
  EXPECT_EQ(status_of(IndexError("i")), LAMELLA_INDEX_ERROR);
  EXPECT_EQ(status_of(ForeignError("f")), LAMELLA_FOREIGN_ERROR);
  EXPECT_EQ(status_of(InternalError("b")), LAMELLA_INTERNAL_ERROR);
  EXPECT_EQ(status_of(std::bad_alloc()), LAMELLA_OUT_OF_MEMORY);
  EXPECT_STREQ(lamella_error_text(), "out of memory");
  EXPECT_EQ(status_of(std::out_of_range("r")), LAMELLA_INDEX_ERROR);
  EXPECT_EQ(status_of(std::invalid_argument("v")), LAMELLA_VALUE_ERROR);
  EXPECT_EQ(status_of(std::runtime_error("x")), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(), "x");
  EXPECT_EQ(status_of(5), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(), "unknown exception");
}

TEST(Error, EveryStatusComesBackAsItsType) {
  auto thrown = [](lamella_status status) {
    lamella_fail(status, "text", 4);
    try {
      detail::check(status);
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "text");
      return e.status();
    }
    return static_cast<lamella_status>(LAMELLA_OK);
  };
  for (lamella_status s = LAMELLA_OK; s <= LAMELLA_LINALG_ERROR; ++s) EXPECT_EQ(thrown(s), s);
  EXPECT_THROW(detail::check(LAMELLA_LINALG_ERROR), LinAlgError);
  EXPECT_THROW(detail::check(LAMELLA_OUT_OF_MEMORY), OutOfMemoryError);
}

TEST(Error, TextIsPerThread) {
  lamella_fail(LAMELLA_ERROR, "mine", 4);
  std::thread([] {
    EXPECT_STREQ(lamella_error_text(), "");
    lamella_fail(LAMELLA_ERROR, "theirs", 6);
    EXPECT_STREQ(lamella_error_text(), "theirs");
  }).join();
  EXPECT_STREQ(lamella_error_text(), "mine");
}

}  // namespace
