# What is built on top of the library: the models of the benchmarks, the random programs
# and the program `tandem`.

# These do without <torch/torch.h>, the slowest of headers, and share the library's precompiled one.
function(tandem_build_on_core target)
  target_link_libraries(${target} PRIVATE tandem_core_flags)
  target_precompile_headers(${target} REUSE_FROM tandem_core)
  tandem_compile_in_batches(${target})
endfunction()

file(GLOB TANDEM_MODEL_SOURCES CONFIGURE_DEPENDS bench/*.cpp)
add_library(tandem_models STATIC ${TANDEM_MODEL_SOURCES})
target_include_directories(tandem_models PUBLIC bench)
target_link_libraries(tandem_models PUBLIC tandem_insides)
tandem_build_on_core(tandem_models)

file(GLOB TANDEM_FUZZ_SOURCES CONFIGURE_DEPENDS fuzz/*.cpp)
add_library(tandem_fuzz STATIC ${TANDEM_FUZZ_SOURCES})
target_include_directories(tandem_fuzz PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(tandem_fuzz PUBLIC tandem_insides PRIVATE nlohmann_json::nlohmann_json)
tandem_build_on_core(tandem_fuzz)
# libtorch, built without its own checks, does not note what they would ask for.
set_source_files_properties(${PROJECT_SOURCE_DIR}/fuzz/shaken_operators.cpp PROPERTIES
                            COMPILE_DEFINITIONS NDEBUG
                            SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)

file(GLOB TANDEM_PROGRAM_SOURCES CONFIGURE_DEPENDS src/cli/*.cpp)
add_executable(tandem_program ${TANDEM_PROGRAM_SOURCES})
set_target_properties(tandem_program PROPERTIES OUTPUT_NAME tandem
                      INSTALL_RPATH "${TORCH_INSTALL_PREFIX}/lib")
target_compile_definitions(tandem_program PRIVATE TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_link_libraries(tandem_program PRIVATE tandem_models tandem_fuzz CLI11::CLI11
                                             nlohmann_json::nlohmann_json)
tandem_build_on_core(tandem_program)
