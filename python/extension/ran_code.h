/// The code of Python's that a trace runs.
#pragma once

#include <unordered_set>

#include "tree.h"

namespace tandem::python {

/// Code, and the globals that it ran with.
struct RanCode {
  py::object code, globals;
};

/// Notes the code that runs on this thread while this lives, by a profile function; one that was set before
/// goes on working. Ends a trace that asks for something of the world outside of Python's objects before it
/// is given that.
class RunningCode {
 public:
  explicit RunningCode(std::vector<RanCode>& codes);
  ~RunningCode();
  RunningCode(const RunningCode&) = delete;

 private:
  static int on_event(PyObject*, PyFrameObject* frame, int event, PyObject* argument);
  bool called(PyFrameObject* frame);
  void returned(PyFrameObject* frame);
  bool called_native(PyFrameObject* frame, PyObject* function);

  std::vector<RanCode>& codes_;
  std::unordered_set<PyObject*> known_;
  int imports_ = 0;  ///< that are under way: what runs there will not run again
  RunningCode* const outer_;
  Py_tracefunc profile_;
  py::object profile_argument_;
};

}  // namespace tandem::python
