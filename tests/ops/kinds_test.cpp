// Operators are called, to see whether they are of the kind that their rows say.
#include <torch/torch.h>

#include "graph/build.h"
#include "ops/table.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int64_t rows = 3, columns = 4;

std::optional<c10::IValue> made_up(const c10::Argument& argument, const at::Tensor& x) {
  if (argument.default_value()) return *argument.default_value();
  const std::string type = argument.type()->repr_str();
  if (type == "Tensor") return x;
  if (type == "int" || type == "SymInt") return int64_t(1);
  if (type == "float") return 0.5;
  if (type == "bool") return false;
  if (type == "number" || type == "Scalar") return at::Scalar(2);
  if (type.find("int[") == 0 || type.find("SymInt[") == 0 || type == "List[int]" ||
      type == "Optional[List[int]]")
    return argument.name() == "dims"   ? std::vector<int64_t>{1, 0}
           : argument.name() == "size" ? std::vector<int64_t>{columns, rows}
                                       : std::vector<int64_t>{1};
  if (type.find("Optional") == 0) return c10::IValue();
  return std::nullopt;
}

/// What an operator makes of `x` in the place of every tensor; nothing where it does not take that, or its
/// arguments cannot be made up.
std::optional<Tensors> results(const c10::OperatorHandle& op, const at::Tensor& x) {
  torch::jit::Stack stack;
  for (const c10::Argument& argument : op.schema().arguments()) {
    auto value = made_up(argument, x);
    if (!value) return std::nullopt;
    stack.push_back(*std::move(value));
  }
  try {
    op.callBoxed(stack);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  Tensors made;
  for (const c10::IValue& result : stack) {
    if (!result.isTensor() || !result.toTensor().defined()) return std::nullopt;
    made.push_back(result.toTensor());
  }
  return made;
}

Tensors samples() {
  torch::manual_seed(0);
  const at::Tensor x = torch::rand({rows, columns}) * 0.8 + 0.1;
  return {x, (x * 10).to(at::kLong), x > 0.5, torch::complex(x, x)};
}

at::Tensor with_another_element(const at::Tensor& x) {
  at::Tensor other = x.clone();
  if (x.scalar_type() == at::kBool)
    other[1][2] = !x[1][2].item<bool>();
  else
    other[1][2] = x.scalar_type() == at::kLong ? x[1][2] + 1 : x[1][2] * 0.5;
  return other;
}

bool same_elsewhere(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor differ = (a != b).logical_and(at::logical_not((a != a).logical_and(b != b)));
  differ[1][2] = false;
  return !differ.any().item<bool>();
}

std::string pointwise_lie(const c10::OperatorHandle& op, const at::Tensor& x, const Tensors& made) {
  const auto others = results(op, with_another_element(x));
  if (!others) return {};
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].sizes() != x.sizes()) return " has results of other sizes";
    if (!same_elsewhere(made[i], (*others)[i])) return " reads elements at other places";
  }
  return {};
}

std::string reduction_lie(const at::Tensor& x, const Tensors& made) {
  return std::any_of(made.begin(), made.end(),
                     [&](const at::Tensor& each) { return each.numel() >= x.numel(); })
             ? " folds nothing"
             : "";
}

std::string view_lie(const at::Tensor& x, const Tensors& made) {
  return std::all_of(made.begin(), made.end(), [&](const at::Tensor& each) { return each.is_alias_of(x); })
             ? ""
             : " makes memory";
}

bool is_seen_by_calling(Kind kind) {
  return kind == Kind::Pointwise || kind == Kind::Reduction || kind == Kind::View;
}

/// What is wrong with calling an operator of this kind and flags so; empty when nothing is.
std::string lie_when_called(const c10::OperatorHandle& op, Kind kind, Flag flags, const at::Tensor& x,
                            const Tensors& made) {
  if (kind == Kind::Pointwise) return pointwise_lie(op, x, made);
  if (kind == Kind::Reduction) return reduction_lie(x, made);
  if (has(flags, Flag::Identity) && (made[0].sizes() != x.sizes() || made[0].strides() != x.strides()))
    return " gives something else back";
  if ((has(flags, Flag::MovesDimensions) || has(flags, Flag::SetsSizes)) && made[0].numel() != x.numel())
    return " leaves elements out";
  return kind == Kind::View ? view_lie(x, made) : "";
}

std::string lie_when_called(const std::string& name, Kind kind, Flag flags = Flag::None) {
  for (const at::Tensor& x : samples())
    if (const auto made = results(op(name), x))
      if (std::string lie = lie_when_called(op(name), kind, flags, x, *made); !lie.empty()) return name + lie;
  return {};
}

}  // namespace

TEST(Kinds, operators_are_of_the_kind_of_their_row) {
  std::map<Kind, int> called;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    const FactRow* row = op ? find_row(name) : nullptr;
    if (!row || !is_seen_by_calling(row->kind) || op->schema().is_mutable() || facts(*op).unset ||
        facts(*op).random)
      continue;
    for (const at::Tensor& x : samples())
      if (const auto made = results(*op, x)) {
        EXPECT_EQ(lie_when_called(*op, row->kind, row->flags, x, *made), "")
            << full_name(*op) << " of " << x.scalar_type();
        ++called[row->kind];
        break;  // division of bools ends a process
      }
  }
  EXPECT_GT(called[Kind::Pointwise], 200);
  EXPECT_GT(called[Kind::Reduction], 30);
  EXPECT_GT(called[Kind::View], 20);
}

TEST(Kinds, views_that_move_dimensions_do_so_whatever_the_strides) {
  const at::Tensor strided =
      torch::rand({2 * rows, 3 * columns}).slice(0, 0, 2 * rows, 2).slice(1, 1, 3 * columns, 3);
  for (const char* name : {"aten::t", "aten::transpose.int", "aten::permute", "aten::squeeze",
                           "aten::squeeze.dim", "aten::squeeze.dims", "aten::unsqueeze"}) {
    ASSERT_TRUE(facts(op(name)).moves_dimensions) << name;
    const auto made = results(op(name), strided);
    ASSERT_TRUE(made) << name;
    EXPECT_TRUE(at::equal(std::get<0>(made->at(0).flatten().sort()), std::get<0>(strided.flatten().sort())))
        << name;
  }
}

TEST(Kinds, a_lie_is_found) {
  EXPECT_NE(lie_when_called("aten::cumsum", Kind::Pointwise), "");
  EXPECT_NE(lie_when_called("aten::sum", Kind::Pointwise), "");
  EXPECT_NE(lie_when_called("aten::cumsum", Kind::Reduction), "");
  EXPECT_NE(lie_when_called("aten::sort", Kind::Reduction), "");
  EXPECT_NE(lie_when_called("aten::relu", Kind::View), "");
  EXPECT_NE(lie_when_called("aten::t", Kind::View, Flag::Identity), "");
  EXPECT_NE(lie_when_called("aten::select.int", Kind::View, Flag::MovesDimensions), "");
}
