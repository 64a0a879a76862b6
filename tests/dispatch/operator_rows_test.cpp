// Operators of constant tables: Note [Operators without an entry].
#include "lamella/dispatch/operator_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lamella/api/operator_tables.h"
#include "lamella/dispatch/registry.h"
#include "tests/dispatch/helpers.h"

namespace lamella {
namespace {

int64_t next(int64_t i) { return i + 1; }
int64_t sum(int64_t i, int64_t j) { return i + j; }
int64_t before(int64_t i) { return i - 1; }

std::vector<std::string> names_of(const std::vector<OperatorEntry*>& operators) {
  std::vector<std::string> names;
  for (const OperatorEntry* op : operators) {
    if (op->name_storage.starts_with("rows::")) names.push_back(op->full_name());
  }
  return names;
}

// The tables of namespace rows, once.
void register_rows() {
  static const SchemaRow schemas[] = {
      {"step(int i) -> int", nullptr, 10},
      {"other(int i) -> int", "core,pointwise", 20},
      {"step.by(int i, int j) -> int", nullptr, 30},
      {"late(int i) -> int", nullptr, 40},
  };
  static const KernelRow kernels[] = {
      kernel_row<&next>("rows::step", 2),
      kernel_row<&next>("rows::other", 3),
      kernel_row<&sum>("rows::step.by", -1),
  };
  static const KernelRow late[] = {kernel_row<&before>("rows::late", 4)};
  static const bool once = [] {
    register_schemas("rows", "rows.yaml", schemas);
    register_kernels(DispatchKey::CompositeImplicitAutograd, "rows.yaml", kernels);
    // This one is looked up before its kernel comes.
    EXPECT_TRUE(Registry::get().lookup("rows::late", "")->is_published());
    register_kernels(DispatchKey::CompositeImplicitAutograd, "rows.yaml", late);
    return true;
  }();
  static_cast<void>(once);
}

TEST(OperatorRows, AnOperatorIsWhatItsRowsSay) {
  register_rows();
  EXPECT_EQ(find("rows::other").typed<int64_t(int64_t)>().call(4), 5);
  OperatorEntry* op = Registry::get().lookup("rows::other", "");
  EXPECT_EQ(op->file + ":" + std::to_string(op->line), "rows.yaml:20");
  EXPECT_EQ(op->tags, (std::vector<std::string>{"core", "pointwise"}));
  EXPECT_EQ(op->kernel_for(DispatchKey::CompositeImplicitAutograd)->where(), "rows.yaml:23");
  EXPECT_EQ(find("rows::late").typed<int64_t(int64_t)>().call(4), 3);
  OperatorEntry* late = Registry::get().lookup("rows::late", "");
  EXPECT_EQ(late->kernel_for(DispatchKey::CompositeImplicitAutograd)->where(), "rows.yaml:44");
}

TEST(OperatorRows, TheOrderIsThatOfTheRows) {
  register_rows();
  Library m = fragment("rows");
  m.def("after(int i) -> int", &next);
  EXPECT_EQ(names_of(Registry::get().overloads("rows::step")),
            (std::vector<std::string>{"rows::step", "rows::step.by"}));
  EXPECT_EQ(names_of(Registry::get().entries()),
            (std::vector<std::string>{"rows::step", "rows::other", "rows::step.by", "rows::late",
                                      "rows::after"}));
}

TEST(OperatorRows, OthersAddToThemAndMayNotDefineThem) {
  static const SchemaRow schemas[] = {{"f(int i) -> int", nullptr, 1}};
  static const KernelRow kernels[] = {
      kernel_row<&next>("rows_shared::f", 0),
  };
  register_schemas("rows_shared", "rows.yaml", schemas);
  register_kernels(DispatchKey::CompositeImplicitAutograd, "rows.yaml", kernels);
  Library m = fragment("rows_shared");
  expect_error([&] { m.def("f(int i) -> int"); },
               "rows_shared::f: is already defined at rows.yaml:1, so it cannot be defined again "
               "at test.cpp:1");
  {
    Library mine = implementation("rows_shared", DispatchKey::CompositeImplicitAutograd);
    mine.impl("f", &before);
    EXPECT_EQ(find("rows_shared::f").typed<int64_t(int64_t)>().call(4), 3);
  }
  EXPECT_EQ(find("rows_shared::f").typed<int64_t(int64_t)>().call(4), 5);
}

TEST(OperatorRows, AnUnknownNameHasNearOnes) {
  register_rows();
  expect_error([] { find("rows::othe"); },
               "unknown operator 'rows::othe'; did you mean 'rows::other'?");
  expect_error([] { find("rows::step", "tw"); },
               "unknown operator 'rows::step.tw'; its overloads are 'rows::step', "
               "'rows::step.by'");
}

TEST(OperatorRows, ThreadsEnterOneEntry) {
  constexpr int kOperators = 200, kThreads = 4;
  static std::vector<std::string> texts;
  static std::vector<SchemaRow> schemas;
  for (int i = 0; i < kOperators; ++i) {
    texts.push_back("f" + std::to_string(i) + "(int i) -> int");
  }
  for (const std::string& text : texts) schemas.push_back({text.c_str(), nullptr, 1});
  register_schemas("rows_threads", "rows.yaml", schemas);
  std::vector<std::vector<OperatorEntry*>> found(kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> waiting{kThreads};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      --waiting;
      while (waiting != 0) {
      }
      for (int i = 0; i < kOperators; ++i) {
        found[t].push_back(Registry::get().find("rows_threads::f" + std::to_string(i), ""));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(found[t], found[0]);
}

}  // namespace
}  // namespace lamella
