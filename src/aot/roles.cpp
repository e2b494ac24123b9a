#include "aot/roles.h"

#include "ops/facts.h"

namespace tandem {
namespace {

InputSource source_of(const InputRole& role) {
  return role.captured ? InputSource::Capture
         : role.stays  ? InputSource::StaticArgument
                       : InputSource::Argument;
}

InputWrite write_of(const InputRole& role) {
  return !role.data_written ? InputWrite::None : role.write_kept ? InputWrite::InGraph : InputWrite::Returned;
}

std::vector<std::string> operators_of(const std::vector<ViewStep>& steps) {
  std::vector<std::string> names;
  for (const ViewStep& step : steps) names.push_back(full_name(step.op));
  return names;
}

}  // namespace

Contract contract_of(const Roles& roles) {
  Contract contract;
  for (const InputRole& role : roles.inputs)
    contract.inputs.push_back({.value = role.value,
                               .name = role.name,
                               .source = source_of(role),
                               .write = write_of(role),
                               .returned = role.returned,
                               .recorded = role.write_recorded,
                               .reshaped = role.metadata_written,
                               .requires_grad = role.requires_grad,
                               .starts_requiring_grad = role.starts_requiring_grad,
                               .view_of = role.view_of});
  for (const OutputRole& role : roles.outputs)
    contract.outputs.push_back(
        {role.value, role.source, role.base, operators_of(role.steps), role.requires_grad});
  contract.tangents = roles.tangents;
  return contract;
}

}  // namespace tandem
