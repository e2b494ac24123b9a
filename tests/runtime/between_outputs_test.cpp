// The way from one tensor of a call that the caller gets to another: gradients, hooks and retained gradients
// are eager's.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::leaf;
using test::same_values;

/// What is compared of a call.
using Ask = std::function<Tensors(const Callable&)>;

void expect_alike(const Callable& program, const Ask& ask, Options options = {}) {
  for (const char* backend : {"eager", "debug"}) {
    options.backend = backend;
    options.must_compile = true;
    const Compiled fast(program, options);
    for (int call = 0; call < 3; ++call) {
      torch::manual_seed(call);
      const Tensors want = ask(program);
      torch::manual_seed(call);
      const Tensors got = ask([&](const Tensors& in) { return fast(in); });
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(same_values(got[i], want[i])) << backend << ", call " << call << ", tensor " << i;
    }
  }
}

Tensors grad(const Tensors& of, const Tensors& wanted, bool create_graph = false) {
  Tensors tangents;
  for (const at::Tensor& root : of)
    tangents.push_back(torch::randn(root.sizes(), at::TensorOptions(root.scalar_type())));
  return torch::autograd::grad(of, wanted, tangents, /*retain_graph=*/true, create_graph,
                               /*allow_unused=*/true);
}

Tensors joined(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Every output with respect to every other and to the inputs, alone and together.
Tensors all_ways(const Callable& f, std::vector<std::vector<int64_t>> sizes) {
  Tensors leaves, found;
  for (const auto& size : sizes) leaves.push_back(leaf(size));
  const Tensors outputs = f(leaves);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensors others = leaves;
    for (size_t j = 0; j < outputs.size(); ++j)
      if (j != i) others.push_back(outputs[j]);
    found = joined(found, grad({outputs[i]}, others));
    found = joined(found, grad({outputs[i]}, leaves));
  }
  return joined(found, grad(outputs, leaves));
}

struct OutputsProgram {
  const char* name;
  Callable function;
};

const std::vector<OutputsProgram>& programs() {
  static const std::vector<OutputsProgram> all = {
      {"logits and loss",
       [](const Tensors& in) {
         at::Tensor y = in[0].mm(in[1]).tanh();
         return Tensors{y, y.square().mean()};
       }},
      {"a chain",
       [](const Tensors& in) {
         at::Tensor a = in[0].sin(), b = (a * in[1]).exp(), c = b.sum() * a.mean();
         return Tensors{a, b, c};
       }},
      {"a leaf that both use",
       [](const Tensors& in) {
         at::Tensor penalty = in[1].square().sum(), y = in[0].mm(in[1]).mm(in[1]),
                    loss = y.sin().sum() + penalty + in[1].exp().sum();
         return Tensors{y, loss};
       }},
      {"a tensor inside that both use",
       [](const Tensors& in) {
         at::Tensor h = in[0].sin(), early = h.exp(), y = h.mm(in[1]),
                    loss = (y * h).sum() + (early * h).sum();
         return Tensors{loss, y};
       }},
      {"losses and their sum",
       [](const Tensors& in) {
         at::Tensor h = in[0].mm(in[1]), one = h.sin().sum(), two = h.cos().mean();
         return Tensors{one, two, one + two * 2};
       }},
      {"nothing in common", [](const Tensors& in) { return Tensors{in[0].sin(), in[1].exp()}; }},
      {"one of several results",
       [](const Tensors& in) {
         const auto parts = in[0].sin().unbind(0);
         return Tensors{parts[0], parts[0] * parts[1], in[1].clone()};
       }},
      {"a view of a result that is used beside it",
       [](const Tensors& in) {
         at::Tensor y = in[0] + in[1], view = y.expand_as(in[0]);
         return Tensors{at::addcdiv(y, view, y), view};
       }},
      {"a part of a result that others use before and behind it",
       [](const Tensors& in) {
         at::Tensor y = in[0].sin(), early = y * in[1], part = y.select(0, 1);
         return Tensors{early.exp() * y + y * in[1], part};
       }},
      {"several views of a result that are used beside it",
       [](const Tensors& in) {
         at::Tensor y = in[0] + in[1], whole = y.alias(), part = y.narrow(0, 0, 1);
         return Tensors{at::addcmul(y, whole, part, 2), whole, part};
       }},
      {"a result that others use before and behind one that is used as well",
       [](const Tensors& in) {
         at::Tensor y = in[0].sigmoid(), early = y.sigmoid(), late = in[1] - y;
         return Tensors{at::addcdiv(early, late, y), late, y};
       }},
      {"maxima, whose formula looks at data",
       [](const Tensors& in) {
         at::Tensor y = in[0].sin(), most = y.max();
         return Tensors{y, most, most * in[1]};
       }},
  };
  return all;
}

TEST(BetweenOutputs, GradientsAreEagers) {
  for (const OutputsProgram& program : programs()) {
    SCOPED_TRACE(program.name);
    expect_alike(program.function, [](const Callable& f) { return all_ways(f, {{3, 3}, {3, 3}}); });
  }
}

TEST(BetweenOutputs, HooksSeeWhatEagersSee) {
  for (const OutputsProgram& program : programs()) {
    SCOPED_TRACE(program.name);
    expect_alike(program.function, [](const Callable& f) {
      at::Tensor a = leaf({3, 3}), b = leaf({3, 3});
      const Tensors outputs = f({a, b});
      Tensors seen(outputs.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        outputs[i].retain_grad();
        outputs[i].register_hook([&seen, i](at::Tensor gradient) {
          seen[i] = gradient;
          return gradient * 2;
        });
      }
      outputs.back().sum().backward();
      for (const at::Tensor& output : outputs) seen.push_back(output.grad());
      return joined(std::move(seen), {a.grad(), b.grad()});
    });
  }
}

TEST(BetweenOutputs, HigherOrdersAreEagers) {
  for (const OutputsProgram& program : programs()) {
    SCOPED_TRACE(program.name);
    const Compiled fast(program.function, {.must_compile = true});
    auto ask = [](const Callable& f) {
      torch::manual_seed(3);
      const auto options = at::TensorOptions(at::kDouble);
      at::Tensor a = torch::randn({3, 3}, options).requires_grad_(),
                 b = torch::randn({3, 3}, options).requires_grad_();
      const Tensors outputs = f({a, b});
      Tensors found;
      for (size_t i = 0; i < outputs.size(); ++i) {
        Tensors wanted = {a, b};
        for (size_t j = 0; j < outputs.size(); ++j)
          if (j != i) wanted.push_back(outputs[j]);
        Tensors first = grad({outputs[i]}, wanted, /*create_graph=*/true), second;
        found = joined(found, first);
        std::erase_if(first, [](const at::Tensor& gradient) {
          return !gradient.defined() || !gradient.requires_grad();
        });
        if (!first.empty()) second = grad(first, wanted, /*create_graph=*/true);
        found = joined(found, second);
        std::erase_if(second, [](const at::Tensor& gradient) {
          return !gradient.defined() || !gradient.requires_grad();
        });
        if (!second.empty()) found = joined(found, grad(second, wanted));
      }
      return found;
    };
    const Tensors want = ask(program.function), got = ask([&](const Tensors& in) { return fast(in); });
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].defined(), want[i].defined()) << i;
      if (want[i].defined()) {
        EXPECT_TRUE(at::allclose(got[i], want[i], 1e-12, 1e-12)) << i << "\n"
                                                                 << got[i] << "\ninstead of\n"
                                                                 << want[i];
      }
    }
  }
}

/// Features are weighted by the gradient of a score with respect to them.
TEST(BetweenOutputs, GradCamIsEagers) {
  torch::nn::Sequential convolutions(torch::nn::Conv2d(3, 8, 3), torch::nn::ReLU(),
                                     torch::nn::Conv2d(8, 8, 3), torch::nn::ReLU());
  torch::nn::Linear head(8, 5);
  const Callable program = [&](const Tensors& in) {
    at::Tensor features = convolutions->forward(in[0]);
    return Tensors{features, head(features.mean({2, 3}))};
  };
  expect_alike(program, [](const Callable& f) {
    const Tensors out = f({torch::randn({2, 3, 9, 9})});
    const at::Tensor weights =
        torch::autograd::grad({out[1].select(1, 2).sum()}, {out[0]}, {}, /*retain_graph=*/true)[0].mean(
            {2, 3}, true);
    return Tensors{(weights * out[0]).sum(1).relu().detach(), weights};
  });
}

TEST(BetweenOutputs, ViewsAreTheCallersOwn) {
  const std::vector<Callable> views = {
      [](const Tensors& in) {
        at::Tensor v = in[0].sin().view({9});
        return Tensors{v, v * 2, v.sum() * in[1]};
      },
      [](const Tensors& in) {
        at::Tensor y = in[0].sin(), v = y.t();
        return Tensors{y, v, v.mm(in[1]), y.exp()};
      },
      [](const Tensors& in) {
        at::Tensor v = in[0].sin().flatten(), w = v.narrow(0, 1, 4);
        return Tensors{w, w.exp() * v.sum()};
      },
  };
  for (size_t i = 0; i < views.size(); ++i) {
    SCOPED_TRACE(i);
    expect_alike(views[i], [](const Callable& f) { return all_ways(f, {{3, 3}, {3, 3}}); });
  }
}

TEST(BetweenOutputs, WrittenInputsLeadToWhatIsComputedFromThem) {
  const Callable program = [](const Tensors& in) {
    in[0].mul_(in[1]);
    return Tensors{in[0].sin(), in[0] * in[1]};
  };
  expect_alike(program, [](const Callable& f) {
    at::Tensor a = leaf({3}), b = leaf({3}), x = a * 2;
    const Tensors out = f({x, b});
    Tensors found = grad({out[0]}, {x, a, b});
    x.retain_grad();
    out[1].sum().backward();
    return joined(std::move(found), {x.grad(), a.grad(), b.grad()});
  });
}

/// The first order of one piece is differentiated through what others saved of it.
TEST(BetweenOutputs, HigherOrdersThroughWrittenInputs) {
  const std::vector<Callable> all = {
      [](const Tensors& in) {
        in[1].index_add_(0, torch::arange(3), in[0]);
        return Tensors{in[1] * in[1]};
      },
      [](const Tensors& in) {
        in[1].mul_(in[0]);
        return Tensors{at::_foreach_addcmul({in[1], in[1]}, {in[1], in[0]}, {in[0], in[1]}, 1)[0]};
      },
      [](const Tensors& in) {
        in[1].addcmul_(in[0], in[0]);
        return Tensors{torch::rand({3}).addcmul_(in[0] - in[0], in[1])};
      },
  };
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    expect_alike(all[i], [](const Callable& f) {
      at::Tensor a = leaf({3}), b = leaf({3}, false);
      const Tensors out = f({a, b});
      Tensors first = grad({out[0]}, {a}, /*create_graph=*/true);
      const Tensors second = grad(first, {a});
      return Tensors{first[0].detach(), second[0]};
    });
  }
}

/// As eager's nodes die with the tensors that lead to them, so do ours.
TEST(BetweenOutputs, NothingKeepsWhatNobodyCanAskFor) {
  const Compiled fast(Callable([](const Tensors& in) {
                        at::Tensor y = in[0].exp();
                        return Tensors{y, y.sin().sum()};
                      }),
                      {.must_compile = true});
  at::Tensor a = leaf({3});
  Tensors out = fast({a});
  c10::weak_intrusive_ptr<c10::StorageImpl> memory(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(out[0].storage().unsafeGetStorageImpl()));
  out.clear();
  EXPECT_TRUE(memory.expired());
}

}  // namespace
}  // namespace tandem
