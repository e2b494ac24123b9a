/// The code of Python's that a trace runs.
#pragma once

#include <unordered_set>

#include "tree.h"

namespace tandem::python {

/// Code, and the globals that it ran with.
struct RanCode {
  py::object code, globals;
};

/// Notes the code that runs on this thread while this lives, by a profile function; one that was set before goes on working.
class RunningCode {
 public:
  RunningCode();
  ~RunningCode();
  RunningCode(const RunningCode&) = delete;
  void stop();

  std::vector<RanCode> codes;
  /// What it asked of the world outside of Python's objects ("time.time"), or nothing.
  std::string outside;

 private:
  static int on_event(PyObject*, PyFrameObject* frame, int event, PyObject* argument);
  void called(PyFrameObject* frame);
  void called_native(PyFrameObject* frame, PyObject* function);

  std::unordered_set<PyObject*> known_;
  RunningCode* const outer_;
  bool runs_ = true;
  Py_tracefunc profile_;
  py::object profile_argument_;
};

}  // namespace tandem::python
