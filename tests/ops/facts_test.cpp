// No row of the op table lies, and facts that come from schemas and tags are read right.
#include "ops/facts.h"

#include <ATen/core/enum_tag.h>
#include <torch/torch.h>

#include <set>
#include <thread>

#include "graph/build.h"
#include "ops/table.h"

using namespace tandem;
using namespace tandem::test;

namespace {

bool is_tensor(const c10::Argument& argument) {
  return argument.type()->repr_str().find("Tensor") != std::string::npos;
}

bool may_see_two_devices(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  return std::count_if(arguments.begin(), arguments.end(), is_tensor) > 1 ||
         schema.argumentIndexWithName("device") || schema.argumentIndexWithName("source") ||
         schema.name() == "aten::set_";
}

/// What is wrong with a row, given every operator that it speaks for; empty when nothing is.
std::string lie_in(const FactRow& row) {
  int spoken_for = 0;
  bool tagged = false;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    auto handle = c10::Dispatcher::singleton().findSchema(name);
    const std::string full = name.overload_name.empty() ? name.name : name.name + '.' + name.overload_name;
    if (!handle || (name.name != row.name && full != row.name)) continue;
    const FactRow* found = find_row(name);
    if (found != &row && found && found->name != name.name) continue;  // has a row of its own
    ++spoken_for;
    const c10::FunctionSchema& schema = handle->schema();
    const auto& arguments = schema.arguments();
    const bool aliased = std::any_of(schema.returns().begin(), schema.returns().end(), [](const auto& r) {
      return r.alias_info() && !r.alias_info()->isWrite();
    });
    const bool by_name = std::any_of(arguments.begin(), arguments.end(), [](const auto& a) {
      return a.type()->repr_str().find("str") != std::string::npos;
    });
    const bool takes_tensor = std::any_of(arguments.begin(), arguments.end(), [](const auto& a) {
      return is_tensor(a) && !(a.alias_info() && a.alias_info()->isWrite());
    });
    if (row.kind == Kind::View && !aliased) return full + " is no view by its schema";
    if (row.kind != Kind::View && row.kind != Kind::Other && aliased && row.kind != Kind::Pointwise)
      return full + " is a view by its schema";
    if (row.kind == Kind::Random && !handle->hasTag(at::Tag::nondeterministic_seeded) && !by_name)
      return full + " has no seeded tag";
    if (row.kind == Kind::Factory && takes_tensor) return full + " takes a tensor";
    if (row.kind == Kind::Factory && handle->hasTag(at::Tag::nondeterministic_seeded))
      return full + " draws from a generator";
    for (int i : row.hidden_writes) {
      if (size_t(i) >= arguments.size() || !is_tensor(arguments[size_t(i)]))
        return full + " has no tensor as argument " + std::to_string(i);
      if (arguments[size_t(i)].alias_info())
        return full + " says itself that it writes argument " + std::to_string(i);
      if (arguments[size_t(i)].name().find("running_") == std::string::npos)
        return full + " hides no write of " + arguments[size_t(i)].name();
    }
    if (has(row.flags, Flag::ReplacesMemory) && !handle->hasTag(at::Tag::inplace_view))
      return full + " leaves sizes and memory alone";
    if (has(row.flags, Flag::SetsSizes) && !(arguments.size() > 1 && arguments[1].name() == "size"))
      return full + " is given no sizes";
    if (has(row.flags, Flag::MixesDevices) && !may_see_two_devices(schema))
      return full + " sees one device alone";
    tagged |= handle->hasTag(at::Tag::dynamic_output_shape);
  }
  if (has(row.flags, Flag::SizesKnown) && !tagged)
    return std::string(row.name) + " needs no word on its sizes";
  return spoken_for ? "" : std::string(row.name) + " is no operator of libtorch";
}

std::vector<const FactRow*> all_rows() {
  std::vector<const FactRow*> rows;
  for (auto part : {pointwise_rows(), other_rows(), special_rows()})
    for (const FactRow& row : part) rows.push_back(&row);
  return rows;
}

}  // namespace

TEST(Facts, no_row_lies) {
  for (const FactRow* row : all_rows()) EXPECT_EQ(lie_in(*row), "");
}

TEST(Facts, no_row_is_there_twice) {
  std::set<std::string> names;
  for (const FactRow* row : all_rows()) EXPECT_TRUE(names.insert(row->name).second) << row->name;
}

TEST(Facts, a_lying_row_is_found) {
  EXPECT_NE(lie_in({"aten::no_such_thing", Kind::Pointwise}), "");
  EXPECT_NE(lie_in({"aten::relu", Kind::View}), "");
  EXPECT_NE(lie_in({"aten::relu", Kind::Random}), "");
  EXPECT_NE(lie_in({"aten::zeros_like", Kind::Factory}), "");
  EXPECT_NE(lie_in({"aten::rand", Kind::Factory}), "");
  EXPECT_NE(lie_in({"aten::view", Kind::Reduction}), "");
  EXPECT_NE(lie_in({"aten::native_layer_norm", Kind::Normalization, 1, Flag::None, {2}}), "");
  EXPECT_NE(lie_in({"aten::_native_batch_norm_legit", Kind::Normalization, 1, Flag::None, {3, 4}}), "");
  EXPECT_NE(lie_in({"aten::relu_", Kind::Other, 1, Flag::ReplacesMemory}), "");
  EXPECT_NE(lie_in({"aten::view.dtype", Kind::View, 1, Flag::SetsSizes}), "");
  EXPECT_NE(lie_in({"aten::relu", Kind::Pointwise, 1, Flag::MixesDevices}), "");
  EXPECT_NE(lie_in({"aten::relu", Kind::Pointwise, 1, Flag::SizesKnown}), "");
}

TEST(Facts, kinds_come_from_the_row_of_the_overload_else_of_the_name_else_of_the_functional_twin) {
  EXPECT_EQ(facts(op("aten::max.other")).kind, Kind::Pointwise);
  EXPECT_EQ(facts(op("aten::max.dim")).kind, Kind::Reduction);
  EXPECT_EQ(facts(op("aten::linspace.out")).kind, Kind::Factory);
  EXPECT_EQ(facts(op("aten::linspace.Tensor_Tensor_out")).kind, Kind::Other);
  EXPECT_EQ(facts(op("aten::add.Tensor")).kind, Kind::Pointwise);
  EXPECT_EQ(facts(op("aten::add_.Tensor")).kind, Kind::Pointwise);
  EXPECT_EQ(facts(op("aten::transpose_")).kind, Kind::Other);
  EXPECT_EQ(facts(op("aten::uniform_")).kind, Kind::Random);
  EXPECT_EQ(facts(op("aten::mm")).kind, Kind::Matmul);
  EXPECT_GT(facts(op("aten::gelu")).cost, facts(op("aten::add.Tensor")).cost);
  EXPECT_EQ(facts(op("aten::nonzero")).kind, Kind::Other);
}

TEST(Facts, schemas_and_tags_are_read) {
  EXPECT_EQ(facts(op("aten::add_.Tensor")).written, std::vector<int>({0}));
  EXPECT_EQ(facts(op("aten::add.out")).written, std::vector<int>({3}));
  EXPECT_EQ(facts(op("aten::rrelu_with_noise")).written, std::vector<int>({1}));
  EXPECT_EQ(facts(op("aten::native_batch_norm")).written, std::vector<int>({3, 4}));
  EXPECT_EQ(facts(op("aten::native_batch_norm")).hidden_writes, std::vector<int>({3, 4}));
  EXPECT_EQ(facts(op("aten::_native_batch_norm_legit")).written, std::vector<int>({3, 4}));
  EXPECT_TRUE(facts(op("aten::_native_batch_norm_legit")).hidden_writes.empty());
  for (const char* name : {"aten::add_.Tensor", "aten::add.out"})
    EXPECT_TRUE(facts(op(name)).counts_writes) << name;
  for (const char* name : {"aten::native_batch_norm", "aten::_native_batch_norm_legit"})
    EXPECT_FALSE(facts(op(name)).counts_writes) << name;
  EXPECT_TRUE(facts(op("aten::view")).view);
  EXPECT_FALSE(facts(op("aten::add_.Tensor")).view);
  EXPECT_FALSE(facts(op("aten::view_copy")).view);
  for (const char* name : {"aten::native_dropout", "aten::bernoulli", "aten::normal_", "aten::rand",
                           "aten::_scaled_dot_product_flash_attention_for_cpu"})
    EXPECT_TRUE(facts(op(name)).random) << name;
  EXPECT_FALSE(facts(op("aten::relu")).random);
  for (const char* name : {"aten::nonzero", "aten::masked_select", "aten::_local_scalar_dense", "aten::equal",
                           "aten::_ctc_loss.Tensor"})
    EXPECT_TRUE(facts(op(name)).data_dependent) << name;
  for (const char* name : {"aten::relu", "aten::index.Tensor", "aten::_ctc_loss"})
    EXPECT_FALSE(facts(op(name)).data_dependent) << name;
  for (const char* name : {"aten::t_", "aten::set_.source_Tensor", "aten::resize_", "aten::squeeze_.dim"})
    EXPECT_TRUE(facts(op(name)).changes_metadata) << name;
  EXPECT_FALSE(facts(op("aten::add_.Tensor")).changes_metadata);
  for (const char* name :
       {"aten::_assert_async", "aten::_functional_assert_async.msg", "aten::record_stream"})
    EXPECT_TRUE(facts(op(name)).side_effect) << name;
  EXPECT_FALSE(facts(op("aten::_foreach_add_.Scalar")).side_effect);
  for (const char* name : {"aten::as_strided", "aten::as_strided_scatter"})
    EXPECT_TRUE(facts(op(name)).counts_from_storage) << name;
  for (const char* name : {"aten::linalg_qr", "aten::_linalg_det", "aten::cumprod", "aten::index_reduce_"})
    EXPECT_TRUE(facts(op(name)).fickle_backward) << name;
  for (const char* name : {"aten::mm", "aten::cumsum"}) EXPECT_FALSE(facts(op(name)).fickle_backward) << name;
  for (const char* name : {"aten::copy_", "aten::index.Tensor", "aten::index_put_"})
    EXPECT_TRUE(facts(op(name)).mixes_devices) << name;
  EXPECT_EQ(full_name(op("aten::add.Tensor")), "aten::add.Tensor");
  EXPECT_EQ(full_name(op("aten::relu")), "aten::relu");
}

TEST(Facts, a_cuda_graph_holds_no_operator_whose_values_the_host_reads) {
  for (const char* name : {"aten::nonzero", "aten::_local_scalar_dense", "aten::equal", "aten::_unique2",
                           "aten::repeat_interleave.Tensor", "aten::_ctc_loss", "aten::_linalg_svd",
                           "aten::linspace.Tensor_Tensor", "tandem::number", "tandem::generator_state"})
    EXPECT_TRUE(facts(op(name)).unrecordable) << name;
  for (const char* name : {"aten::add.Tensor", "aten::mm", "aten::index.Tensor", "aten::native_dropout",
                           "aten::linalg_qr", "aten::linspace", "aten::sort"})
    EXPECT_FALSE(facts(op(name)).unrecordable) << name;
}

TEST(Facts, loops_take_what_computes_elements_and_does_nothing_else) {
  for (const char* name :
       {"aten::add.Tensor", "aten::sum.dim_IntList", "aten::_softmax", "aten::view", "aten::zeros"})
    EXPECT_TRUE(facts(op(name)).fusible) << name;
  for (const char* name : {"aten::add_.Tensor", "aten::add.out", "aten::mm", "aten::sort", "aten::rand",
                           "aten::empty_like", "aten::native_batch_norm", "aten::nonzero"})
    EXPECT_FALSE(facts(op(name)).fusible) << name;
}

TEST(Facts, every_family_speaks_for_an_operator) {
  const auto names = c10::Dispatcher::singleton().getAllOpNames();
  for (const FamilyRow& family : family_rows())
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const auto& name) {
      return name.name.starts_with(family.prefix);
    })) << family.prefix;
}

TEST(Facts, what_changes_metadata_has_a_view_for_a_twin_or_other_memory) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle || !facts(*handle).changes_metadata) continue;
    const std::string twin = name.name.substr(0, name.name.size() - 1);
    bool views = false;
    for (const c10::OperatorName& other : c10::Dispatcher::singleton().getAllOpNames())
      if (auto found = c10::Dispatcher::singleton().findSchema(other); found && other.name == twin)
        views |= facts(*found).view;
    EXPECT_NE(views, facts(*handle).replaces_memory) << full_name(*handle);
  }
}

TEST(Facts, what_is_given_an_offset_counts_from_the_storage) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle || !name.name.starts_with("aten::")) continue;
    const bool given = handle->schema().argumentIndexWithName("storage_offset") &&
                       !handle->schema().argumentIndexWithName("source");
    EXPECT_EQ(facts(*handle).counts_from_storage, given) << full_name(*handle);
  }
}

TEST(Facts, every_thread_is_given_the_same_facts) {
  std::vector<const OpFacts*> seen(8);
  std::vector<std::thread> threads;
  for (auto& slot : seen) threads.emplace_back([&slot] { slot = &facts(op("aten::lgamma")); });
  for (auto& thread : threads) thread.join();
  for (const OpFacts* each : seen) EXPECT_EQ(each, seen[0]);
}
