#include "backends/calls.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

namespace tandem {
namespace {

/// Some argument of the type that a schema asks for.
ArgumentSlot argument_for(const std::string& type) {
  if (type == "Tensor" || type == "Tensor?") return TensorSlot{0};
  if (type == "int" || type == "SymInt" || type == "ScalarType" || type == "Scalar")
    return c10::IValue(int64_t(1));
  if (type == "bool") return c10::IValue(true);
  if (type == "float") return c10::IValue(0.5);
  if (type == "str") return c10::IValue("none");
  if (type == "int[]" || type == "SymInt[]") return c10::IValue(std::vector<int64_t>{1});
  return c10::IValue();
}

CallSite site_for(const c10::OperatorHandle& op) {
  CallSite site{op};
  for (const c10::Argument& argument : op.schema().arguments())
    site.arguments.push_back(argument_for(argument.real_type()->str()));
  site.results.resize(op.schema().returns().size(), int32_t(1));
  return site;
}

}  // namespace

/// libtorch compares the C++ types with those that its kernels were registered with, and throws on a
/// difference. Operators that name dimensions have the schema of others and other types: they go boxed, in
/// the libtorchs that have them.
TEST(UnboxedCalls, EveryOperatorIsCalledByARowThatFitsItOrBoxed) {
  size_t unboxed = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op) continue;
    EXPECT_NO_THROW(unboxed += make_unboxed_call(site_for(*op)) != nullptr) << name;
  }
  EXPECT_GT(unboxed, 300u);
}

TEST(UnboxedCalls, AnOperatorOfTheSameSchemaAndOtherTypesGoesBoxed) {
  torch::Library library(torch::Library::FRAGMENT, "aten", std::nullopt, __FILE__, __LINE__);
  library.def("_tandem_takes_view(Tensor x, str word) -> Tensor",
              [](const at::Tensor& x, c10::string_view) { return x + x; });
  library.def("_tandem_takes_string(Tensor x, str word) -> Tensor",
              [](const at::Tensor& x, std::string) { return x + x; });
  auto unboxed = [](const char* name) {
    return make_unboxed_call(site_for(c10::Dispatcher::singleton().findSchemaOrThrow(name, ""))) != nullptr;
  };
  EXPECT_TRUE(unboxed("aten::_tandem_takes_view"));
  EXPECT_FALSE(unboxed("aten::_tandem_takes_string"));
}

TEST(UnboxedCalls, AgreeWithBoxedOnes) {
  auto op = [](const char* name, const char* overload = "") {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  };
  at::Tensor x = at::rand({4, 6});
  auto constants = [](std::initializer_list<c10::IValue> rest) {
    std::vector<ArgumentSlot> arguments{TensorSlot{0}};
    for (const c10::IValue& value : rest) arguments.emplace_back(value);
    return arguments;
  };
  CallSite sites[] = {
      {op("aten::view"), constants({std::vector<int64_t>{-1, 3}}), {1}},
      {op("aten::sum", "dim_IntList"), constants({std::vector<int64_t>{1}, true, c10::IValue()}), {1}},
      {op("aten::sum", "dim_IntList"),
       constants({c10::IValue(), false, c10::IValue(int64_t(at::kDouble))}),
       {1}},
      {op("aten::slice", "Tensor"), constants({int64_t(1), int64_t(-5), c10::IValue(), int64_t(2)}), {1}},
      {op("aten::expand"), constants({std::vector<int64_t>{2, -1, -1}, false}), {1}},
      {op("aten::add", "Scalar"), constants({int64_t(2), 0.5}), {1}},
      {op("aten::gelu"), constants({"tanh"}), {1}},
      {op("aten::clone"), constants({c10::IValue()}), {1}},
      {op("aten::permute"), constants({std::vector<int64_t>{-1, 0}}), {1}},
  };
  for (const CallSite& site : sites) {
    auto call = make_unboxed_call(site);
    ASSERT_TRUE(call) << site.op.operator_name();
    torch::jit::Stack stack;
    at::Tensor registers[2] = {x, {}}, expected[2] = {x, {}};
    call->run(registers, stack);
    make_boxed_call(site)->run(expected, stack);
    EXPECT_TRUE(at::equal(registers[1], expected[1])) << site.op.operator_name();
    EXPECT_EQ(registers[1].strides(), expected[1].strides()) << site.op.operator_name();
  }
}

}  // namespace tandem
