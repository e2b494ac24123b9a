// Facts = the row of the table + what the schema and its tags say, put together once per operator.
#include "ops/facts.h"

#include <ATen/core/enum_tag.h>

#include <tandem/error.h>
#include <tandem/ops.h>

#include <atomic>
#include <mutex>
#include <set>

#include "ops/by_operator.h"
#include "ops/table.h"

namespace tandem {

std::string full_name(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + '.' + name.overload_name;
}

namespace {

using Rows = std::unordered_map<std::string_view, const FactRow*>;

Rows index_rows() {
  Rows index;
  for (std::span<const FactRow> rows : {pointwise_rows(), other_rows(), special_rows()})
    for (const FactRow& row : rows) index.emplace(row.name, &row);
  return index;
}

bool has_twin_in_place(const FactRow& row) { return row.kind == Kind::Pointwise || row.kind == Kind::Random; }

void read_schema(const c10::FunctionSchema& schema, OpFacts& facts) {
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (alias && alias->isWrite()) facts.written.push_back(int(i));
  }
  for (const c10::Argument& result : schema.returns())
    if (result.alias_info() && !result.alias_info()->isWrite()) facts.view = true;
}

/// libtorch counts versions in the kernels that it generates for calls in place and for results that are
/// given; its other operators that write do not.
bool counts_writes(const c10::FunctionSchema& schema, const OpFacts& facts) {
  bool in_place_or_out = schema.name().ends_with('_') ||
                         std::all_of(facts.written.begin(), facts.written.end(),
                                     [&](int i) { return schema.arguments()[size_t(i)].kwarg_only(); });
  return facts.hidden_writes.empty() && (in_place_or_out || !schema.name().starts_with("aten::"));
}

void read_tags(const c10::OperatorHandle& op, OpFacts& facts) {
  facts.random = op.hasTag(at::Tag::nondeterministic_seeded);
  facts.data_dependent =
      op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output);
  facts.unrecordable = op.hasTag(at::Tag::cudagraph_unsafe);
  facts.changes_metadata = op.hasTag(at::Tag::inplace_view);
}

void read_flags(Flag flags, OpFacts& facts) {
  static constexpr std::pair<Flag, bool OpFacts::*> meanings[] = {
      {Flag::SideEffect, &OpFacts::side_effect},
      {Flag::DataDependent, &OpFacts::data_dependent},
      {Flag::Unset, &OpFacts::unset},
      {Flag::MindsGradMode, &OpFacts::minds_grad_mode},
      {Flag::Unrecordable, &OpFacts::unrecordable},
      {Flag::FickleBackward, &OpFacts::fickle_backward},
      {Flag::MixesDevices, &OpFacts::mixes_devices},
      {Flag::ReplacesMemory, &OpFacts::replaces_memory},
      {Flag::Identity, &OpFacts::identity},
      {Flag::CountsFromStorage, &OpFacts::counts_from_storage},
      {Flag::SetsSizes, &OpFacts::sets_sizes},
      {Flag::MovesDimensions, &OpFacts::moves_dimensions},
  };
  for (auto [flag, fact] : meanings) facts.*fact |= has(flags, flag);
  if (has(flags, Flag::SizesKnown)) facts.data_dependent = false;
}

void read_row(const FactRow& row, OpFacts& facts) {
  facts.kind = row.kind;
  facts.cost = row.cost;
  facts.hidden_writes = row.hidden_writes;
  facts.random |= row.kind == Kind::Random;  // overloads with named dimensions lack the tag
  read_flags(row.flags, facts);
}

bool is_kind_of_loop(Kind kind) {
  return kind != Kind::Other && kind != Kind::Matmul && kind != Kind::Random;
}

OpFacts gather(const c10::OperatorHandle& op) {
  OpFacts facts;
  read_schema(op.schema(), facts);
  read_tags(op, facts);
  if (const FactRow* row = find_row(op.operator_name())) read_row(*row, facts);
  for (const FamilyRow& family : family_rows())
    if (op.operator_name().name.starts_with(family.prefix)) read_flags(family.flags, facts);
  facts.counts_writes = counts_writes(op.schema(), facts);
  // An operator that gives nothing back can only be there for its effect.
  facts.side_effect |= op.schema().returns().empty() && facts.written.empty();
  facts.written.insert(facts.written.end(), facts.hidden_writes.begin(), facts.hidden_writes.end());
  std::sort(facts.written.begin(), facts.written.end());
  facts.unrecordable |= facts.data_dependent;
  const bool computes_alone = facts.written.empty() && !facts.random && !facts.data_dependent && !facts.unset;
  facts.fusible = is_kind_of_loop(facts.kind) && computes_alone;
  return facts;
}

/// What was declared, and what was gathered so far.
struct Known {
  std::mutex mutex;
  std::set<std::string> declared;
  std::atomic<uint64_t> declarations = 0;
  ByOperator<OpFacts> facts;

  bool has_side_effect(const c10::OperatorHandle& op) {
    std::lock_guard lock(mutex);
    return !declared.empty() && declared.count(full_name(op));
  }

  void declare_side_effect(const c10::OperatorHandle& op) {
    {
      std::lock_guard lock(mutex);
      declared.insert(full_name(op));
    }
    facts.forget();
    ++declarations;
  }
};

Known& known() {
  // Never destroyed: threads may ask while the process ends.
  static auto& all = *new Known;
  return all;
}

OpFacts gather_with_declarations(const c10::OperatorHandle& op) {
  OpFacts facts = gather(op);
  facts.side_effect |= known().has_side_effect(op);
  return facts;
}

}  // namespace

const FactRow* find_row(const c10::OperatorName& name) {
  static const Rows& rows = *new Rows(index_rows());
  auto find = [](const std::string& key) {
    auto it = rows.find(key);
    return it == rows.end() ? nullptr : it->second;
  };
  const FactRow* row = nullptr;
  if (!name.overload_name.empty()) row = find(name.name + '.' + name.overload_name);
  if (!row && name.overload_name.ends_with("_out"))
    row = find(name.name + '.' + name.overload_name.substr(0, name.overload_name.size() - 4));
  if (!row) row = find(name.name);
  if (row || !name.name.ends_with('_')) return row;
  row = find(name.name.substr(0, name.name.size() - 1));
  return row && has_twin_in_place(*row) ? row : nullptr;
}

bool is_mark(const c10::OperatorHandle& op) { return op.operator_name().name.starts_with("profiler::"); }

const OpFacts& facts(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<c10::OperatorHandle, const OpFacts*> seen;
  thread_local uint64_t changes = 0;
  if (const uint64_t now = known().declarations.load(std::memory_order_acquire) + operators_gone();
      now != changes) {
    seen.clear();
    changes = now;
  }
  const OpFacts*& entry = seen[op];
  if (!entry) entry = &known().facts.of(op, gather_with_declarations);
  return *entry;
}

std::vector<std::string> declared_side_effects() {
  std::lock_guard lock(known().mutex);
  return {known().declared.begin(), known().declared.end()};
}

void register_side_effect(const std::string& op) {
  const size_t dot = op.find('.');
  auto found = c10::Dispatcher::singleton().findSchema(
      {op.substr(0, dot), dot == std::string::npos ? "" : op.substr(dot + 1)});
  if (!found)
    throw Error("register_side_effect: libtorch has no operator " + op +
                "; check the spelling and the overload, and that the library that registers it is loaded");
  known().declare_side_effect(*found);
}

}  // namespace tandem
