#include "partition/split.h"

#include <tandem/error.h>

#include <algorithm>

namespace tandem {
namespace {

class Halves {
 public:
  Halves(const Partition& halves, const Joint& joint, const PartitionContext& context,
         const std::string& partitioner)
      : halves_(halves), joint_(joint), context_(context), partitioner_(partitioner) {}

  void check() const {
    const auto &inputs = joint_.graph.inputs(), &outputs = joint_.graph.outputs();
    const auto tangents = inputs.begin() + int64_t(joint_.primals),
               gradients = outputs.begin() + int64_t(joint_.forward_outputs);
    check_graph(halves_.forward, "forward");
    check_graph(halves_.backward, "backward");
    expect(halves_.forward.inputs() == std::vector<Value>(inputs.begin(), tangents),
           "the forward does not take the joint's primals");
    expect(halves_.forward.outputs() == joined({outputs.begin(), gradients}, halves_.saved),
           "the forward does not return the joint's forward outputs, then the saved values");
    expect(halves_.backward.inputs() == joined(halves_.saved, {tangents, inputs.end()}),
           "the backward does not take the saved values, then the tangents");
    expect(halves_.backward.outputs() == std::vector<Value>(gradients, outputs.end()),
           "the backward does not return the joint's gradients");
    for (Value v : context_.must_save)
      expect(std::find(halves_.saved.begin(), halves_.saved.end(), v) != halves_.saved.end(),
             "it does not save " + joint_.graph.name(v) + ", which PartitionContext::must_save names");
  }

 private:
  void expect(bool holds, const std::string& otherwise) const {
    if (!holds) throw Error("the partitioner '" + partitioner_ + "' split a graph wrongly: " + otherwise);
  }
  void check_graph(const Graph& half, const char* which) const {
    try {
      half.verify();
    } catch (const Error& error) {
      expect(false, std::string("its ") + which + " is not well formed: " + error.what());
    }
  }

  const Partition& halves_;
  const Joint& joint_;
  const PartitionContext& context_;
  const std::string& partitioner_;
};

}  // namespace

void verify(const Partition& halves, const Joint& joint, const PartitionContext& context,
            const std::string& partitioner) {
  Halves(halves, joint, context, partitioner).check();
}

}  // namespace tandem
