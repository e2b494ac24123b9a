# Configures, builds and runs the consumer project against a build folder or against what is installed from
# it. Takes: WHERE (build_tree or install_prefix), TANDEM_BUILD, TORCH_DIR, GENERATOR, COMPILER, LAUNCHER,
# WORK (a folder of its own).

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
if(WHERE STREQUAL "install_prefix")
  step(${CMAKE_COMMAND} --install ${TANDEM_BUILD} --prefix ${WORK}/prefix)
  set(package -DCMAKE_PREFIX_PATH=${WORK}/prefix)
else()
  set(package -Dtandem_DIR=${TANDEM_BUILD})
endif()

step(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G ${GENERATOR}
     -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
     -DTorch_DIR=${TORCH_DIR} ${package})
step(${CMAKE_COMMAND} --build ${WORK}/build)
step(${WORK}/build/consumer)

# The program that was installed must find its libraries from where it is now.
if(EXISTS ${WORK}/prefix/bin/tandem)
  step(${WORK}/prefix/bin/tandem --help)
endif()
