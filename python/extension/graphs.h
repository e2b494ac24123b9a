/// Graphs, what compiles and splits them, and what is said about a compile, for Python.
#pragma once

#include <pybind11/pybind11.h>
#include <tandem/options.h>

namespace tandem::python {

void bind_graphs(pybind11::module_& module);

/// A Python function of (graph, context) that returns a function of a list of tensors.
Compiler compiler_from(pybind11::object function);
/// A Python function of a Joint that returns a Partition.
Partitioner partitioner_from(pybind11::object function);
/// A Python function of a Graph and a Node that returns seconds.
CostModel cost_model_from(pybind11::object function);

}  // namespace tandem::python
