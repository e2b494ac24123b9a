// Programs whose operators are equal and whose gradients are not have different keys.
#include "cache/fingerprints.h"

namespace tandem::test {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

at::Tensor counted_leaf(at::IntArrayRef sizes) {
  return (torch::arange(1, 1 + c10::multiply_integers(sizes)).to(at::kFloat) / 7)
      .reshape(sizes)
      .requires_grad_();
}

/// Multiplies the gradient by what it was told, and the value by nothing.
struct Scaled : torch::autograd::Function<Scaled> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double factor) {
    context->saved_data["factor"] = factor;
    return x.sin();
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    return {gradients[0] * context->saved_data["factor"].toDouble(), at::Tensor()};
  }
};

struct Straight : torch::autograd::Function<Straight> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.sin(); }
  static tensor_list backward(AutogradContext*, tensor_list gradients) { return gradients; }
};

/// Its gradient reads the tensor that it was told to keep.
struct Keeps : torch::autograd::Function<Keeps> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& y, bool second) {
    context->save_for_backward({second ? y : x});
    return x * y;
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const at::Tensor gradient = gradients[0] * context->get_saved_variables()[0];
    return {gradient, gradient, at::Tensor()};
  }
};

/// Doubles its argument where it lies.
struct InPlace : torch::autograd::Function<InPlace> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x, int64_t factor) {
    context->saved_data["factor"] = factor;
    x.mul_(2);
    context->mark_dirty({x});
    return x;
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    return {gradients[0] * context->saved_data["factor"].toInt(), at::Tensor()};
  }
};

at::Tensor without_grad(const std::function<at::Tensor()>& compute) {
  at::NoGradGuard guard;
  return compute();
}

struct Pair {
  const char* name;
  Function first, second;
};

Function scaled(double factor) {
  return [=](const Tensors& in) { return Tensors{Scaled::apply(in[0], factor) * in[1]}; };
}
Function keeps(bool second) {
  return [=](const Tensors& in) { return Tensors{Keeps::apply(in[0], in[1], second)}; };
}
Function in_place(int64_t factor) {
  return [=](const Tensors& in) {
    at::Tensor x = in[0] * in[1];
    InPlace::apply(x[0], factor);
    return Tensors{x};
  };
}
/// Both products are computed; the one that autograd saw gives its history to the data of the other.
Function swapped_data(bool swap) {
  return [=](const Tensors& in) {
    at::Tensor first, second;
    const at::Tensor a = in[0].detach(), b = in[1].detach();
    if (swap) {
      first = in[0] * a;
      second = without_grad([&] { return in[0] * b; });
      first.set_data(second);
      return Tensors{first * 2};
    }
    first = without_grad([&] { return in[0] * a; });
    second = in[0] * b;
    return Tensors{second * 2};
  };
}

const Pair pairs[] = {
    {"a region without grad", [](const Tensors& in) { return Tensors{in[0].sin() * in[1]}; },
     [](const Tensors& in) { return Tensors{without_grad([&] { return in[0].sin(); }) * in[1]}; }},
    {"a result without grad", [](const Tensors& in) { return Tensors{in[0].sin(), in[1] * 2}; },
     [](const Tensors& in) {
       const at::Tensor first = without_grad([&] { return in[0].sin(); });
       return Tensors{first, in[1] * 2};
     }},
    {"which of two is read detached",
     [](const Tensors& in) {
       const at::Tensor detached = in[0].detach();
       return Tensors{in[0] * in[1] + detached * detached};
     },
     [](const Tensors& in) {
       const at::Tensor detached = in[0].detach();
       return Tensors{detached * in[1] + in[0] * detached};
     }},
    {"which factor is bare data",
     [](const Tensors& in) {
       const at::Tensor product = in[0] * in[1], sum = in[0] + in[1];
       return Tensors{product.data() * sum};
     },
     [](const Tensors& in) {
       const at::Tensor product = in[0] * in[1], sum = in[0] + in[1];
       return Tensors{product * sum.data()};
     }},
    {"a custom function", [](const Tensors& in) { return Tensors{in[0].sin() * in[1]}; },
     [](const Tensors& in) { return Tensors{Straight::apply(in[0]) * in[1]}; }},
    {"which custom function", scaled(2),
     [](const Tensors& in) { return Tensors{Straight::apply(in[0]) * in[1]}; }},
    {"a number for a custom function's backward", scaled(2), scaled(3)},
    {"a tensor for a custom function's backward", keeps(false), keeps(true)},
    {"a number for a custom function that writes a view", in_place(2), in_place(3)},
    {"a history with other data", swapped_data(false), swapped_data(true)},
};

std::vector<std::string> operators(const Function& function, const Tensors& inputs) {
  std::vector<std::string> names;
  const Traced trace = traced(function, inputs);
  for (const tandem::Node& node : trace.tracer->graph().nodes())
    names.push_back(node.op.operator_name().name);
  return names;
}

/// Of the sum of all outputs that have one.
Tensors gradients(const Function& function, const Tensors& inputs) {
  Tensors roots;
  for (const at::Tensor& output : function(inputs))
    if (output.requires_grad()) roots.push_back(output.sum());
  return torch::autograd::grad(roots, inputs, {}, std::nullopt, false, /*allow_unused=*/true);
}

bool equal(const Tensors& a, const Tensors& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].defined() != b[i].defined() || (a[i].defined() && !at::equal(a[i], b[i]))) return false;
  return true;
}

void register_functions() {
  register_function<Scaled>("1");
  register_function<Straight>("1");
  register_function<Keeps>("1");
  register_function<InPlace>("1");
}

TEST(KeyGradients, EqualOperatorsAndOtherGradientsAreOtherKeys) {
  register_functions();
  for (const Pair& pair : pairs) {
    const Tensors inputs{counted_leaf({2, 3}), counted_leaf({2, 3}) * 3};
    ASSERT_EQ(operators(pair.first, inputs), operators(pair.second, inputs)) << pair.name;
    ASSERT_FALSE(equal(gradients(pair.first, inputs), gradients(pair.second, inputs))) << pair.name;
    const Fingerprint first = fingerprint_of(pair.first, inputs),
                      second = fingerprint_of(pair.second, inputs);
    EXPECT_EQ(first.obstacle + second.obstacle, "") << pair.name;
    EXPECT_NE(first.key, second.key) << pair.name;
    EXPECT_EQ(first.key, fingerprint_of(pair.first, inputs).key) << pair.name;
  }
}

/// The history alone tells these apart.
TEST(KeyGradients, HistoryTellsWhatTheTraceDoesNot) {
  register_functions();
  for (const char* name :
       {"a custom function", "which custom function", "a number for a custom function's backward",
        "a tensor for a custom function's backward", "a number for a custom function that writes a view"}) {
    const Pair& pair = *std::find_if(std::begin(pairs), std::end(pairs),
                                     [&](const Pair& one) { return one.name == std::string(name); });
    const Tensors inputs{counted_leaf({2, 3}), counted_leaf({2, 3})};
    const auto names = differing(fingerprint_of(pair.first, inputs), fingerprint_of(pair.second, inputs));
    EXPECT_TRUE(std::find(names.begin(), names.end(), "history") != names.end()) << name;
    EXPECT_TRUE(std::find(names.begin(), names.end(), "trace") == names.end()) << name;
  }
}

TEST(KeyGradients, WhatAProgramRetainsOrStartsToRequire) {
  auto retains = [](bool yes) -> Function {
    return [=](const Tensors& in) {
      const at::Tensor out = in[0].sin();
      if (yes) out.retain_grad();
      return Tensors{out};
    };
  };
  auto starts = [](bool yes) -> Function {
    return [=](const Tensors& in) {
      if (yes) in[1].requires_grad_();
      return Tensors{in[0].sin()};
    };
  };
  const Tensors inputs{counted_leaf({3}), torch::ones({3})};
  EXPECT_NE(fingerprint_of(retains(false), inputs).key, fingerprint_of(retains(true), inputs).key);
  EXPECT_NE(fingerprint_of(starts(false), inputs).key, fingerprint_of(starts(true), inputs).key);
}

}  // namespace
}  // namespace tandem::test
