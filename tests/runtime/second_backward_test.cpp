// Backwards behind others: refused where eager's nodes have given up what they saved, and only there.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::message;

/// Of which output, and where only one input's gradient is asked for, of which.
using Row = std::vector<std::pair<size_t, std::optional<size_t>>>;

/// What a row of backwards says, one word each, and the gradients that they leave.
std::string outcome(const Callable& function, const Row& backwards) {
  torch::manual_seed(0);
  const Tensors inputs = {torch::rand({3}).requires_grad_(), torch::rand({3}).requires_grad_()};
  const Tensors outputs = function(inputs);
  std::ostringstream out;
  for (const auto& [output, input] : backwards)
    out << message([&] {
             if (input)
               torch::autograd::grad({outputs[output].sum()}, {inputs[*input]});
             else
               outputs[output].sum().backward();
           }).substr(0, 60)
        << ";";
  for (const at::Tensor& input : inputs) out << input.grad();
  return out.str();
}

struct Program {
  const char* name;
  Tensors (*function)(const Tensors&);
};

Tensors put(const Tensors& in) {
  at::Tensor made = torch::zeros(3);
  made.index_put_({torch::tensor({1, 2})}, in[0].index({torch::tensor({1, 1})}));
  return {made};
}

Tensors write_part(const Tensors& in) {
  at::Tensor y = in[0] + 1;
  y.slice(0, 0, 2).add_(2);
  return {y};
}

const Program one_output[] = {
    {"indices are saved", put},
    {"nothing is saved", [](const Tensors& in) { return Tensors{(in[0] + in[1]).sum()}; }},
    {"a number is saved", [](const Tensors& in) { return Tensors{in[0] * 2}; }},
    {"a number is not saved", [](const Tensors& in) { return Tensors{in[0] + 2}; }},
    {"factors are saved", [](const Tensors& in) { return Tensors{in[0] * in[1]}; }},
    {"what is written is saved", [](const Tensors& in) { return Tensors{(in[0] + 1).pow_(2)}; }},
    {"what was written is saved", [](const Tensors& in) { return Tensors{(in[0] + 1).exp_()}; }},
    {"a part is written", write_part},
    {"something else is saved", [](const Tensors& in) { return Tensors{in[0] + 1, in[1].exp()}; }},
};

TEST(SecondBackward, IsRefusedWhereEagersIs) {
  for (const Program& program : one_output)
    for (std::optional<size_t> input : {std::optional<size_t>(), std::optional<size_t>(0)}) {
      const Compiled fast(program.function, {});
      EXPECT_EQ(outcome([&](const Tensors& in) { return fast(in); }, {{0, input}, {0, input}}),
                outcome(program.function, {{0, input}, {0, input}}))
          << program.name;
    }
}

const Program two_outputs[] = {
    {"factors are shared", [](const Tensors& in) { return Tensors{in[0] * in[1], in[0] * in[1].exp()}; }},
    {"a sum is shared",
     [](const Tensors& in) {
       return [](const at::Tensor& sum) { return Tensors{sum.sin(), sum.cos()}; }(in[0] + in[1]);
     }},
    {"an exponential is shared",
     [](const Tensors& in) {
       return [](const at::Tensor& both) { return Tensors{both + 1, both.sin()}; }(in[0].exp());
     }},
    {"nothing is shared", [](const Tensors& in) { return Tensors{in[0].exp(), in[1].exp()}; }},
    {"one saves nothing", [](const Tensors& in) { return Tensors{in[0].exp(), in[0] + 1}; }},
};

TEST(SecondBackward, OfAnotherOutputIsRefusedWhereEagersIs) {
  for (const Program& program : two_outputs)
    for (const auto& row : std::vector<Row>{{{0, {}}, {1, {}}, {0, {}}},
                                            {{1, {}}, {0, {}}, {1, {}}},
                                            {{0, 0}, {1, {}}},
                                            {{1, {}}, {1, {}}}}) {
      const Compiled fast(program.function, {});
      EXPECT_EQ(outcome([&](const Tensors& in) { return fast(in); }, row), outcome(program.function, row))
          << program.name;
    }
}

}  // namespace
}  // namespace tandem
