# Builds tests with the sanitizers of a preset, and runs them; docs/sanitizers.md says what the settings below leave out, and why.
# Takes: SOURCE, PRESET, WORK (the build folder), TORCH_DIR, DEPS, GENERATOR, COMPILER, JOBS, PROGRAMS (separated by commas).

string(REPLACE "," ";" PROGRAMS "${PROGRAMS}")

execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} --preset ${PRESET} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} -DTorch_DIR=${TORCH_DIR} -DTANDEM_DEPS=${DEPS}
                WORKING_DIRECTORY ${SOURCE} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK} -j ${JOBS} --target ${PROGRAMS} COMMAND_ERROR_IS_FATAL ANY)

# libtorch is not instrumented, so what it keeps until the end and the containers it grows would be reported as ours.
set(ENV{ASAN_OPTIONS} detect_leaks=0:detect_container_overflow=0:detect_stack_use_after_return=1)
set(ENV{UBSAN_OPTIONS} print_stacktrace=1)
set(ENV{TSAN_OPTIONS} suppressions=${SOURCE}/tests/threads/tsan.supp:history_size=7:second_deadlock_stack=1)
foreach(program ${PROGRAMS})
  message(STATUS "${program}")
  execute_process(COMMAND ${WORK}/tests/${program} --gtest_brief=1 RESULT_VARIABLE status)
  if(status)
    message(SEND_ERROR "${program} failed under the sanitizers: ${status}")
  endif()
endforeach()
