// The model that valid declarations are parsed into.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "codegen/model.h"
#include "codegen/tags.h"
#include "lamella/schema/parser.h"

namespace lamella::codegen {
namespace {

class Models : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::temp_directory_path() /
           ("lamella_model_test_" +
            std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (dir_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // The model of `text`, which must be free of errors.
  Model good(const std::string& text) {
    Diagnostics diagnostics;
    Model model = load_model({write("ops.yaml", text)}, options_, sources_, diagnostics);
    EXPECT_EQ(diagnostics.str(), "");
    return model;
  }

  std::filesystem::path dir_;
  SourceSet sources_;
  ModelOptions options_;
};

TEST_F(Models, KeepWhatWasWritten) {
  options_.default_namespace = "mine";
  Model model = good(R"(
- func: my_sum(Tensor self, int dim=0) -> Tensor
  variants: function
  structured_delegate: my_sum.out
  device_check: NoCheck
  python_module: linalg
  tags: [reduction, core]
  cpp_no_default_args: ['dim']
  manual_cpp_binding: True

- func: my_sum.out(Tensor self, int dim=0, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  use_const_ref_for_mutable_tensors: True
  precomputed:
  - dim -> int dim, std::array<int, 2> both
  - bool extra
  ufunc_inner_loop:
    Generic: sum (AllAndComplex, Half)
    ScalarOnly: sum (Bool)
  dispatch:
    Meta, SparseCPU: custom::ns::sum_meta
    QuantizedCPU: mine::sum_q
    MkldnnCPU: sum_mkldnn
)");
  ASSERT_EQ(model.functions.size(), 2u);
  const NativeFunction& f = model.functions[0];
  EXPECT_EQ(f.full_name(), "mine::my_sum");
  EXPECT_TRUE(f.function_variant);
  EXPECT_FALSE(f.method_variant);
  EXPECT_EQ(f.structured_delegate->str(), "my_sum.out");
  EXPECT_EQ(f.device_check, DeviceCheck::kNone);
  EXPECT_TRUE(f.device_guard);
  EXPECT_EQ(f.python_module, "linalg");
  EXPECT_EQ(f.tags, (std::vector<std::string>{"core", "reduction"}));
  EXPECT_EQ(f.cpp_no_default_args, std::vector<std::string>{"dim"});
  EXPECT_TRUE(f.manual_cpp_binding);
  EXPECT_TRUE(f.dispatch.empty()) << "a delegate without a table has no kernels of its own";
  EXPECT_EQ(f.where.line, 2);
  EXPECT_EQ(f.where.column, 9);

  const NativeFunction& out = model.functions[1];
  EXPECT_TRUE(out.structured);
  EXPECT_EQ(out.structured_inherits, "TensorIteratorBase");
  EXPECT_TRUE(out.use_const_ref_for_mutable_tensors);
  ASSERT_EQ(out.precomputed.size(), 2u);
  EXPECT_EQ(out.precomputed[0].replaced, "dim");
  ASSERT_EQ(out.precomputed[0].with.size(), 2u);
  EXPECT_EQ(out.precomputed[0].with[1].type, "std::array<int, 2>");
  EXPECT_EQ(out.precomputed[0].with[1].name, "both");
  EXPECT_EQ(out.precomputed[1].replaced, "");
  ASSERT_EQ(out.ufunc_inner_loop.size(), 2u);
  EXPECT_EQ(out.ufunc_inner_loop[0].dtypes, (std::vector<std::string>{"AllAndComplex", "Half"}));
  ASSERT_EQ(out.dispatch.size(), 4u);
  EXPECT_EQ(out.find_kernel("SparseCPU")->ns, "custom::ns::native");
  EXPECT_EQ(out.find_kernel("SparseCPU")->name, "sum_meta");
  EXPECT_EQ(out.find_kernel("QuantizedCPU")->ns, "mine::native");
  EXPECT_EQ(out.find_kernel("MkldnnCPU")->ns, "");
  EXPECT_EQ(out.find_kernel("CPU"), nullptr);

  ASSERT_EQ(model.groups.size(), 1u);
  EXPECT_EQ(model.groups[0].functional, &model.functions[0]);
  EXPECT_EQ(model.groups[0].out, &model.functions[1]);
  EXPECT_TRUE(model.groups[0].structured());
}

TEST_F(Models, FillInTheDefaultTable) {
  Model model = good(R"(
- func: twice.Tensor(Tensor self) -> Tensor
- func: twice.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
- func: twice_(Tensor(a!) self) -> Tensor(a!)
- func: by_hand(Tensor self) -> Tensor
  manual_kernel_registration: True
- func: elsewhere(Tensor self) -> Tensor
  dispatch: {}
)");
  EXPECT_EQ(model.functions[0].find_kernel("CompositeImplicitAutograd")->name, "twice");
  EXPECT_TRUE(model.functions[0].default_dispatch);
  EXPECT_EQ(model.functions[1].find_kernel("CompositeImplicitAutograd")->name, "twice_out");
  EXPECT_EQ(model.functions[2].find_kernel("CompositeImplicitAutograd")->name, "twice_");
  EXPECT_TRUE(model.functions[3].dispatch.empty());
  EXPECT_TRUE(model.functions[4].dispatch.empty());
  EXPECT_FALSE(model.functions[4].default_dispatch);
}

TEST_F(Models, MakeAutogenVariants) {
  Model model = good(R"(
- func: own::scale_.Scalar(Tensor(a!) self, Scalar by) -> Tensor(a!)
  dispatch:
    CPU: scale_
  autogen: own::scale.Scalar, scale.Scalar_out
- func: fill_random(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
  dispatch:
    CPU: fill_random
  autogen: fill_random.out
- func: observe(Tensor self, Tensor(a!) seen) -> (Tensor y, Tensor mask)
  dispatch:
    CPU: observe
  autogen: observe_functional, observe.out
- func: _foreach_neg_(Tensor(a!)[] self) -> ()
  dispatch:
    CPU: foreach_neg_
  autogen: _foreach_neg.out
)");
  std::vector<std::string> made;
  for (const NativeFunction& f : model.functions) {
    if (f.autogen_of == nullptr) continue;
    made.push_back(f.schema.str());
    EXPECT_TRUE(f.has_tag("generated"));
  }
  EXPECT_EQ(made,
            (std::vector<std::string>{
                "own::scale.Scalar(Tensor self, Scalar by) -> Tensor",
                "own::scale.Scalar_out(Tensor self, Scalar by, *, Tensor(a!) out) -> Tensor(a!)",
                "fill_random.out(int[] size, *, Tensor(a!) out) -> Tensor(a!)",
                "observe_functional(Tensor self, Tensor seen) -> (Tensor y, Tensor mask, Tensor "
                "seen_out)",
                "observe.out(Tensor self, Tensor(a!) seen, *, Tensor(b!) out0, Tensor(c!) out1) -> "
                "(Tensor(b!), Tensor(c!))",
                "_foreach_neg.out(Tensor[] self, *, Tensor(a!)[] out) -> ()",
            }));
  const NativeFunction* scale = model.find("own::scale.Scalar");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->autogen_of, model.find("own::scale_.Scalar"));
  // Variants of one operation stand in one group.
  EXPECT_EQ(model.groups[0].functional, scale);
  EXPECT_EQ(model.groups[0].inplace, model.find("own::scale_.Scalar"));
  EXPECT_EQ(model.groups[0].out, model.find("own::scale.Scalar_out"));
}

TEST_F(Models, MakeOutFormsWithNamedOutArguments) {
  Model model = good(R"(
- func: split3(Tensor self, *, ScalarType? dtype=None) -> (Tensor first, Tensor last)
  dispatch:
    CompositeImplicitAutograd: split3
  autogen: split3.first(front, back)
- func: total.dim(Tensor self, int dim) -> Tensor
  dispatch:
    CPU, Meta: total
  autogen: total.out(out)
)");
  std::vector<std::string> made;
  for (const NativeFunction& f : model.functions) {
    if (f.autogen_of != nullptr) made.push_back(f.schema.str() + " " + f.batching);
  }
  EXPECT_EQ(made, (std::vector<std::string>{
                      "split3.first(Tensor self, *, ScalarType? dtype=None, Tensor(a!) front, "
                      "Tensor(b!) back) -> (Tensor(a!) first, Tensor(b!) last) composite",
                      "total.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!) composite",
                  }));
}

TEST_F(Models, MakeTheFamilyOfAFunctionalForm) {
  Model model = good(R"(
- func: plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  variants: function, method
  structured: True
  dispatch:
    CPU, Meta: plus
  autogen: plus_.Tensor, plus.out
- func: peak.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)
  structured: True
  dispatch:
    CPU: peak
  autogen: peak.dim_out
- func: minus.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: minus
  autogen: minus, minus_
)");
  std::vector<std::string> made;
  for (const NativeFunction& f : model.functions) {
    if (f.autogen_of != nullptr) made.push_back(f.schema.str());
  }
  EXPECT_EQ(
      made,
      (std::vector<std::string>{
          "plus_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
          "plus.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
          "peak.dim_out(Tensor self, int dim, *, Tensor(a!) out0, Tensor(b!) out1) -> "
          "(Tensor(a!), Tensor(b!))",
          "minus(Tensor self) -> Tensor",
          "minus_(Tensor(a!) self) -> Tensor(a!)",
      }));
  EXPECT_TRUE(model.find("aten::plus_.Tensor")->method_variant);
  EXPECT_FALSE(model.find("aten::plus.out")->method_variant);
  ASSERT_EQ(model.groups.size(), 3u);
  for (const NativeFunctionGroup& group : model.groups) EXPECT_TRUE(group.structured());
  EXPECT_EQ(model.groups[0].functional, model.find("aten::plus.Tensor"));
  EXPECT_EQ(model.groups[0].inplace, model.find("aten::plus_.Tensor"));
  EXPECT_EQ(model.groups[0].out, model.find("aten::plus.out"));
}

TEST_F(Models, KnowViewsAndFactories) {
  Model model = good(R"(
- func: window(Tensor(a) self) -> Tensor(a)
- func: pieces(Tensor(a -> *) self) -> Tensor(a)[]
- func: turn(Tensor(a) self) -> Tensor(a)
- func: turn_(Tensor(a!) self) -> Tensor(a!)
  tags: inplace_view
- func: twice(Tensor self) -> Tensor
- func: ones(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
- func: new_ones(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
- func: odd(Tensor self) -> Tensor
  category_override: factory
- func: twice_backward(Tensor grad) -> Tensor
)");
  auto names = [&](auto test) {
    std::string out;
    for (const NativeFunction& f : model.functions) {
      if (test(f)) out += f.schema.name.name + " ";
    }
    return out;
  };
  EXPECT_EQ(names([](const NativeFunction& f) { return f.is_view(); }),
            "window pieces turn turn_ ");
  EXPECT_EQ(names([](const NativeFunction& f) { return f.is_factory(); }), "ones new_ones odd ");
  EXPECT_EQ(names([](const NativeFunction& f) { return skipped_in_python(f); }), "twice_backward ");
}

TEST_F(Models, JoinFiles) {
  Diagnostics diagnostics;
  const std::string a = write("a.yaml", "- func: twice(Tensor self) -> Tensor\n");
  const std::string b = write("b.yaml", "\n- func: twice(Tensor self) -> Tensor\n");
  load_model({a, b, (dir_ / "none.yaml").string()}, {}, sources_, diagnostics);
  const std::string dir = dir_.string() + "/";
  EXPECT_EQ(diagnostics.str(), dir + "b.yaml:2:9: error: twice: already declared on line 1 of " +
                                   dir +
                                   "a.yaml; give one of them another overload name\n"
                                   "  - func: twice(Tensor self) -> Tensor\n"
                                   "          ^\n" +
                                   dir + "none.yaml: error: cannot read the file\n");
}

TEST_F(Models, TakeMoreTags) {
  options_.tag_files = {write("tags.yaml", "- tag: mine\n  desc: A tag of my own.\n")};
  EXPECT_TRUE(good("- func: f(Tensor self) -> Tensor\n  tags: [mine, core]\n")
                  .functions[0]
                  .has_tag("mine"));
  options_.tag_files = {write("bad.yaml", "- tog: mine\n- 1\n")};
  Diagnostics diagnostics;
  load_model({}, options_, sources_, diagnostics);
  ASSERT_EQ(diagnostics.items().size(), 3u);
  EXPECT_EQ(diagnostics.items()[0].message, "a tag has the fields 'tag' and 'desc', got 'tog'");
  EXPECT_EQ(diagnostics.items()[1].message, "a tag needs a 'tag' with its name");
  EXPECT_EQ(diagnostics.items()[2].message, "expected '- tag: NAME', got '1'");
}

TEST_F(Models, AcceptOddButGoodFiles) {
  EXPECT_TRUE(good("").functions.empty());
  EXPECT_TRUE(good("# nothing yet\n").functions.empty());
  EXPECT_TRUE(good("---\n").functions.empty());
  EXPECT_EQ(good("\xEF\xBB\xBF- func: f(Tensor self) -> Tensor\r\n  variants: method\r\n")
                .functions.size(),
            1u);
  EXPECT_EQ(good("- {func: 'f(Tensor self) -> Tensor', variants: 'method'}\n").functions.size(),
            1u);
  EXPECT_EQ(good("- func: &f f(Tensor self) -> Tensor\n  dispatch: {CPU: &k kern, CUDA: *k}\n")
                .functions[0]
                .find_kernel("CUDA")
                ->name,
            "kern");
}

}  // namespace
}  // namespace lamella::codegen
