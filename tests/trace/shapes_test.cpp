#include "shapes/rules/rules.h"
#include "trace/shape_samples.h"
#include "shapes/shapes.h"
#include "shapes/stand_in.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <tandem/error.h>

#include <iostream>
#include <set>

namespace tandem {
namespace {

using samples::Sample;
using torch::jit::Stack;

using Family = std::vector<Sample> (*)();
/// The same numbers in another layout or dtype.
using Relayout = at::Tensor (*)(const at::Tensor&);

at::Tensor transposed(const at::Tensor& t) {
  return t.dim() < 2 ? t : t.transpose(0, -1).contiguous().transpose(0, -1);
}
at::Tensor rotated(const at::Tensor& t) {
  return t.dim() < 3 ? t : t.movedim(-1, 0).contiguous().movedim(0, -1);
}
at::Tensor channels_last(const at::Tensor& t) {
  return t.dim() == 4   ? t.contiguous(at::MemoryFormat::ChannelsLast)
         : t.dim() == 5 ? t.contiguous(at::MemoryFormat::ChannelsLast3d)
                        : t;
}
at::Tensor with_gaps(const at::Tensor& t) {
  return t.dim() < 1 ? t : at::repeat_interleave(t, 2, t.dim() - 1).slice(-1, 0, c10::nullopt, 2);
}
at::Tensor doubled(const at::Tensor& t) { return t.scalar_type() == at::kFloat ? t.to(at::kDouble) : t; }
at::Tensor halved(const at::Tensor& t) { return t.scalar_type() == at::kFloat ? t.to(at::kBFloat16) : t; }
at::Tensor expanded(const at::Tensor& t) {
  return t.dim() < 1 || t.size(0) == 0 || !t.is_floating_point() ? t : t.slice(0, 0, 1).expand(t.sizes());
}
at::Tensor all_alike(const at::Tensor& t) { return t.numel() == 0 ? t : t.flatten()[0].expand(t.sizes()); }
at::Tensor unchanged(const at::Tensor& t) { return t; }

template <class Map>
c10::IValue map_tensors(const c10::IValue& value, Map&& map) {
  if (value.isTensor() && value.toTensor().defined()) return map(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(map(t));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& t : value.toOptionalTensorVector())
      list.push_back(t ? std::optional<at::Tensor>(map(*t)) : std::nullopt);
    return list;
  }
  return value;
}

Stack fill_defaults(const Sample& sample) {
  Stack stack(sample.arguments.begin(), sample.arguments.end());
  const auto& wanted = find_op(sample.op).schema().arguments();
  for (size_t i = stack.size(); i < wanted.size(); ++i)
    stack.push_back(wanted[i].default_value().value_or(c10::IValue()));
  return stack;
}

/// All arguments re-laid, and each tensor argument alone.
void add_layouts(const Sample& sample, const Stack& stack, std::vector<Stack>& all) {
  for (Relayout relayout :
       {unchanged, transposed, rotated, channels_last, with_gaps, doubled, halved, expanded}) {
    // these kernels take dense tensors for granted
    if (sample.op.starts_with("aten::_fused_") && relayout != unchanged && relayout != doubled &&
        relayout != halved)
      continue;
    Stack every;
    for (const c10::IValue& v : stack) every.push_back(map_tensors(v, relayout));
    all.push_back(every);
    if (relayout == unchanged || relayout == doubled) continue;
    for (size_t i = 0; i < stack.size(); ++i) {
      if (!stack[i].isTensor() || !stack[i].toTensor().defined() || stack[i].toTensor().dim() == 0) continue;
      Stack one = stack;
      one[i] = map_tensors(stack[i], relayout);
      all.push_back(one);
    }
  }
  // One argument that has every place alike says nothing of the order of dimensions: that is left to the
  // others, unless a kernel copies it first.
  for (size_t i = 0; i < stack.size() && !sample.op.starts_with("aten::_fused_"); ++i) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined() || stack[i].toTensor().dim() < 2) continue;
    Stack one;
    for (size_t j = 0; j < stack.size(); ++j)
      one.push_back(map_tensors(stack[j], j == i ? all_alike : transposed));
    all.push_back(one);
  }
}

/// Families and operators whose kernels read beyond tensors that do not fit together; on a GPU an index that
/// does not fit leaves the device unusable.
bool takes_sizes_for_granted(const Sample& sample, Family family, c10::Device device) {
  return !device.is_cpu() || family == samples::layers || family == samples::losses ||
         sample.op.starts_with("aten::_embedding_bag") || sample.op.starts_with("aten::segment_reduce");
}

/// In every layout, as it is and, where kernels check what they are given, with one or two dimensions of all
/// its tensors made 1: what kernels make of strides hangs on them.
std::vector<Stack> variants(const Sample& sample, Family family, c10::Device device) {
  const Stack stack = fill_defaults(sample);
  std::vector<Stack> all;
  add_layouts(sample, stack, all);
  if (takes_sizes_for_granted(sample, family, device)) return all;
  constexpr int64_t most = 5;
  for (int64_t first = 0; first < most; ++first)
    for (int64_t second = first; second < most; ++second) {
      Stack narrow;
      bool changed = false;
      for (const c10::IValue& v : stack)
        narrow.push_back(map_tensors(v, [&](at::Tensor t) {
          for (int64_t d : {first, second})
            if (d < t.dim() && t.size(d) > 1) t = t.slice(d, 0, 1).contiguous(), changed = true;
          return t;
        }));
      if (!changed) continue;
      for (Relayout relayout : {unchanged, transposed, rotated, channels_last, with_gaps}) {
        Stack& every = all.emplace_back();
        for (const c10::IValue& v : narrow) every.push_back(map_tensors(v, relayout));
      }
    }
  return all;
}

std::string show(const at::Tensor& t) {
  return c10::str(t.scalar_type(), t.sizes(), " strides ", t.strides(), " offset ", t.storage_offset());
}

std::string show(const Stack& stack) {
  std::string text;
  for (const c10::IValue& v : stack) {
    if (v.isTensor())
      text += v.toTensor().defined() ? show(v.toTensor()) : "undefined";
    else if (v.isTensorList() || v.isOptionalTensorList())
      text += "[tensors]";
    else
      text += c10::str(v);
    text += ", ";
  }
  return text;
}

std::vector<at::Tensor> flatten(const Stack& stack) {
  std::vector<at::Tensor> all;
  for (const c10::IValue& v : stack) {
    if (v.isTensor()) all.push_back(v.toTensor());
    if (v.isTensorList())
      for (const at::Tensor& t : v.toTensorVector()) all.push_back(t);
  }
  return all;
}

/// Which argument each result shares memory with, and whether it is that very tensor.
std::vector<std::pair<int, bool>> aliases(const Stack& arguments, const Stack& results) {
  std::vector<std::pair<int, bool>> found;
  auto inputs = flatten(arguments);
  for (const at::Tensor& r : flatten(results)) {
    std::pair<int, bool> alias{-1, false};
    for (size_t i = 0; i < inputs.size() && r.defined(); ++i)
      if (inputs[i].defined() && r.storage().is_alias_of(inputs[i].storage())) {
        alias = {int(i), r.is_same(inputs[i])};
        break;
      }
    found.push_back(alias);
  }
  return found;
}

std::string differences(const Stack& real, const Stack& meta) {
  if (real.size() != meta.size()) return c10::str(real.size(), " results, inferred ", meta.size());
  auto a = flatten(real), b = flatten(meta);
  if (a.size() != b.size()) return c10::str(a.size(), " tensors, inferred ", b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].defined() != b[i].defined())
      return c10::str("result ", i, (a[i].defined() ? " is" : " is not"), " defined");
    if (!a[i].defined()) continue;
    bool same = a[i].scalar_type() == b[i].scalar_type() && a[i].sizes() == b[i].sizes() &&
                a[i].is_conj() == b[i].is_conj();
    for (int64_t d = 0; same && a[i].numel() && d < a[i].dim(); ++d)
      same = a[i].size(d) < 2 || a[i].stride(d) == b[i].stride(d);
    if (!same) return c10::str("result ", i, " is ", show(a[i]), ", inferred ", show(b[i]));
    if (!b[i].is_meta()) return c10::str("result ", i, " is no meta tensor");
  }
  return {};
}

struct Tally {
  std::set<std::string> checked, ran_on_stand_ins;
  int calls = 0;
};

/// The call with its tensors on `device`; where there are none, it is told to make them there.
Stack on(c10::Device device, const Sample& sample, const Stack& stack) {
  Stack moved;
  for (const c10::IValue& v : stack)
    moved.push_back(map_tensors(v, [&](const at::Tensor& t) { return t.to(device); }));
  auto where = find_op(sample.op).schema().argumentIndexWithName("device");
  if (where && flatten(stack).empty()) moved[*where] = device;
  return moved;
}

/// Metas of tensors that share memory share it too.
Stack metas_of(const Stack& stack) {
  std::unordered_map<c10::StorageImpl*, c10::Storage> storages;
  Stack metas;
  for (const c10::IValue& v : stack)
    metas.push_back(map_tensors(v, [&](const at::Tensor& t) {
      at::Tensor meta = make_meta(describe(t, t.device()));
      auto [shared, fresh] = storages.try_emplace(t.storage().unsafeGetStorageImpl(), meta.storage());
      if (shared->second.nbytes() < meta.storage().nbytes())
        shared->second.unsafeGetStorageImpl()->set_nbytes(meta.storage().nbytes());
      if (!fresh) meta.unsafeGetTensorImpl()->set_storage_keep_dtype(shared->second);
      return meta;
    }));
  return metas;
}

void check(const Sample& sample, const Stack& given, c10::Device device, Tally& tally) {
  c10::OperatorHandle op = find_op(sample.op);
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  Stack real = given, meta = metas_of(given);
  Stack real_arguments = real, meta_arguments = meta;
  try {
    op.callBoxed(real);
  } catch (const std::exception&) {
    return;  // not a call that eager allows
  }
  size_t fallbacks = fallback_operators().size();
  try {
    Devices devices = infer_shapes(op, device, meta);
    for (size_t i = 0; i < real.size() && i < devices.size(); ++i)
      if (real[i].isTensor() && real[i].toTensor().defined()) {
        EXPECT_EQ(devices[i], real[i].toTensor().device()) << sample.op;
      }
    std::string difference = differences(real, meta);
    if (difference.empty() && aliases(real_arguments, real) != aliases(meta_arguments, meta))
      difference = "results alias other arguments";
    EXPECT_TRUE(difference.empty()) << sample.op << "(" << show(given) << "): " << difference;
  } catch (const std::exception& error) {
    ADD_FAILURE() << sample.op << "(" << show(given) << "): " << std::string(error.what()).substr(0, 300);
  }
  if (fallback_operators().size() > fallbacks) tally.ran_on_stand_ins.insert(sample.op);
  tally.checked.insert(sample.op);
  ++tally.calls;
}

constexpr std::initializer_list<Family> families = {samples::pointwise,  samples::reductions, samples::layers,
                                                    samples::resampling, samples::indexing,   samples::losses,
                                                    samples::algebra,    samples::others};

Tally check_family(Family family, c10::Device device) {
  Tally tally;
  for (const Sample& sample : family())
    for (const Stack& stack : variants(sample, family, device)) {
      Stack placed;
      try {
        placed = on(device, sample, stack);
        // a kernel read or wrote where it must not: nothing runs on the device after that
      } catch (const std::exception& error) {
        throw std::runtime_error("the kernel called before " + sample.op + "(" + show(stack) + ") left " +
                                 device.str() + " unusable: " + std::string(error.what()).substr(0, 200));
      }
      check(sample, placed, device, tally);
    }
  std::cout << tally.calls << " calls of " << tally.checked.size() << " operators; run on stand-in data:";
  for (const std::string& op : tally.ran_on_stand_ins) std::cout << " " << op;
  std::cout << "\n";
  return tally;
}

std::set<std::string> names(const std::vector<Sample>& samples) {
  std::set<std::string> found;
  for (const Sample& sample : samples) found.insert(sample.op);
  return found;
}

TEST(Shapes, AreThoseOfTheKernelsAndEveryRowHasASample) {
  std::set<std::string> checked, cuda = names(samples::cuda_only());
  for (Family family : families) checked.merge(check_family(family, c10::kCPU).checked);
  for (const rules::Row& row : rules::all()) {
    std::string name(row.name);
    EXPECT_TRUE(checked.contains(name) || cuda.contains(name))
        << name << " has a shape rule and no sample that the kernel accepts";
  }
}

TEST(Shapes, AreThoseOfTheCudaKernels) {
  if (!at::hasCUDA())
    GTEST_SKIP() << "needs a GPU; the rules for CUDA alone go unchecked: " << samples::cuda_only().size()
                 << " samples";
  c10::Device device(c10::kCUDA, 0);
  for (Family family : families) check_family(family, device);
  Tally tally;
  for (const Sample& sample : samples::cuda_only()) check(sample, fill_defaults(sample), device, tally);
  EXPECT_EQ(tally.checked, names(samples::cuda_only()));
}

/// The results of an operator on metas of these arguments.
Stack infer(const std::string& op, Stack arguments) {
  for (c10::IValue& v : arguments)
    v = map_tensors(v, [](const at::Tensor& t) { return make_meta(describe(t, c10::kCPU)); });
  infer_shapes(find_op(op), c10::kCPU, arguments);
  return arguments;
}

TEST(Shapes, WrongArgumentsGiveTheErrorOfEager) {
  EXPECT_THROW(infer("aten::mm", {samples::floats({2, 3}), samples::floats({2, 3})}), c10::Error);
  EXPECT_THROW(
      infer("aten::convolution", fill_defaults({"aten::convolution",
                                                {samples::floats({1, 2, 5, 5}), samples::floats({4, 3, 3, 3}),
                                                 samples::none, samples::ints({1, 1}), samples::ints({0, 0}),
                                                 samples::ints({1, 1}), false, samples::ints({0, 0}), 1}})),
      c10::Error);
  EXPECT_THROW(infer("aten::floor_divide_.Tensor", {samples::floats({3}), samples::floats({2, 3})}),
               c10::Error);
  EXPECT_THROW(infer("aten::floor_divide_.Tensor", {samples::indices({3}), samples::floats({3})}),
               c10::Error);
}

TEST(Shapes, AWrappedNumberPromotesAsInEager) {
  at::Tensor number = at::scalar_tensor(2.5, at::kDouble);
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  Stack stack{make_meta({3}, at::kFloat), number, 1};
  infer_shapes(find_op("aten::rsub.Tensor"), c10::kCPU, stack);
  EXPECT_EQ(stack[0].toTensor().scalar_type(), at::kFloat);
  at::Tensor imaginary = at::scalar_tensor(c10::complex<double>(0, 1), at::kComplexDouble);
  imaginary.unsafeGetTensorImpl()->set_wrapped_number(true);
  auto dtype_of_product = [](const at::Tensor& self, const at::Tensor& factor) {
    Stack product{self, factor};
    infer_shapes(find_op("aten::mul.Tensor"), c10::kCPU, product);
    return product[0].toTensor().scalar_type();
  };
  EXPECT_EQ(dtype_of_product(make_meta({3}, at::kFloat), number), at::kFloat);
  EXPECT_EQ(dtype_of_product(make_meta({3}, at::kLong), number), at::kFloat);
  EXPECT_EQ(dtype_of_product(make_meta({3}, at::kFloat), imaginary), at::kComplexFloat);
  EXPECT_EQ(dtype_of_product(make_meta(at::IntArrayRef{}, at::kFloat), number), at::kFloat);
}

TEST(StandIns, LeaveTheGeneratorAsItWas) {
  at::Tensor before = at::detail::getDefaultCPUGenerator().get_state();
  Stack stack{make_meta({3, 4}, at::kFloat), 0.5, c10::IValue()};
  run_on_stand_ins(find_op("aten::bernoulli.p"), c10::kCPU, stack);
  EXPECT_TRUE(at::equal(before, at::detail::getDefaultCPUGenerator().get_state()));
}

TEST(StandIns, KeepViewsViewsAndWritesWrites) {
  at::Tensor x = make_meta({3, 4}, at::kFloat), y = make_meta({3, 4}, at::kFloat);
  Stack view{x};
  run_on_stand_ins(find_op("aten::t"), c10::kCPU, view);
  EXPECT_TRUE(view[0].toTensor().is_meta() && view[0].toTensor().storage().is_alias_of(x.storage()));
  EXPECT_EQ(view[0].toTensor().sizes(), at::IntArrayRef({4, 3}));
  Stack write{x, y, 1};
  run_on_stand_ins(find_op("aten::add_.Tensor"), c10::kCPU, write);
  EXPECT_TRUE(write[0].toTensor().is_same(x));
  Stack reshape{y, 0};
  run_on_stand_ins(find_op("aten::unsqueeze_"), c10::kCPU, reshape);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({1, 3, 4}));
}

TEST(StandIns, AreCountedByName) {
  infer("aten::histc", {samples::floats({5}), 3, 0, 0});
  auto names = fallback_operators();
  EXPECT_TRUE(std::binary_search(names.begin(), names.end(), std::string("aten::histc")));
}

TensorMeta matrix(int64_t rows, int64_t columns, int32_t storage) {
  return {at::kFloat, c10::kCPU, {rows, columns}, {columns, 1}, 0, storage};
}

TEST(AppendCall, DescribesResultsAndFillsDefaults) {
  Graph graph;
  Value x = graph.add_input(matrix(3, 4, 7));
  Node& sum = append_call(graph, find_op("aten::add.Tensor"), {x, x}, Phase::Backward);
  EXPECT_EQ(sum.arguments.size(), 3u);
  EXPECT_EQ(sum.phase, Phase::Backward);
  EXPECT_EQ(graph.meta(std::get<Value>(sum.results[0])), matrix(3, 4, 8));
}

TEST(AppendCall, AViewSharesItsArgumentsStorage) {
  Graph graph;
  Value x = graph.add_input(matrix(3, 4, 7));
  Value y = std::get<Value>(append_call(graph, find_op("aten::t"), {x}, Phase::Forward).results[0]);
  EXPECT_EQ(graph.meta(y).storage, 7);
  EXPECT_EQ(graph.meta(y).strides, Dims({1, 4}));
}

TEST(AppendCall, AResultThatIsNotThereIsNone) {
  Graph graph;
  Value x = graph.add_input(matrix(3, 4, 0)), statistics = graph.add_input(matrix(3, 1, 1));
  Node& node = append_call(graph, find_op("aten::native_layer_norm_backward"),
                           {x, x, samples::ints({4}), statistics, statistics, Value{}, Value{},
                            samples::masks({true, false, false})},
                           Phase::Backward);
  EXPECT_TRUE(std::get<Value>(node.results[0]));
  EXPECT_FALSE(std::get<Value>(node.results[1]));
}

TEST(AppendCall, RefusesWritesAndMissingArguments) {
  Graph graph;
  Value x = graph.add_input(matrix(3, 4, 0));
  EXPECT_THROW(append_call(graph, find_op("aten::add_.Tensor"), {x, x}, Phase::Forward), Error);
  EXPECT_THROW(append_call(graph, find_op("aten::add.Tensor"), {x}, Phase::Forward), Error);
  EXPECT_THROW(find_op("aten::no_such_operator"), Error);
}

}  // namespace
}  // namespace tandem
