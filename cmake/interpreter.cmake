# The Python that the package is built for, and its torch: the Python named by -DPython_EXECUTABLE (a wheel's
# build names its own), else the one whose torch Torch_DIR names, else the one on PATH. Sets
# TANDEM_PYTHON_TORCH to the folder of its torch, or to nothing.

if(Torch_DIR AND NOT Python_EXECUTABLE)
  cmake_path(SET beside_torch NORMALIZE ${Torch_DIR}/../../../../../../../bin/python3)
  if(EXISTS ${beside_torch})
    set(Python_EXECUTABLE ${beside_torch})
  endif()
endif()
find_package(Python 3.11 COMPONENTS Interpreter)

# torch itself is not imported, which would take seconds.
set(TANDEM_PYTHON_TORCH "")
if(Python_Interpreter_FOUND)
  set(print_folder "import importlib.util, os
spec = importlib.util.find_spec('torch')
print(os.path.dirname(spec.origin) if spec and spec.origin else '')")
  execute_process(COMMAND ${Python_EXECUTABLE} -c "${print_folder}" OUTPUT_VARIABLE TANDEM_PYTHON_TORCH
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
