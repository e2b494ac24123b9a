# Builds tests with the sanitizers of a preset. Takes: SOURCE, PRESET, WORK (the build folder), TORCH_DIR,
# DEPS, GENERATOR, COMPILER, JOBS, PROGRAMS (separated by commas).

string(REPLACE "," ";" PROGRAMS "${PROGRAMS}")

execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} --preset ${PRESET} -G ${GENERATOR}
                        -DCMAKE_CXX_COMPILER=${COMPILER} -DTorch_DIR=${TORCH_DIR} -DTANDEM_DEPS=${DEPS}
                WORKING_DIRECTORY ${SOURCE} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK} -j ${JOBS} --target ${PROGRAMS}
                COMMAND_ERROR_IS_FATAL ANY)
