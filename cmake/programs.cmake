# What is built on top of the library: the models of the benchmarks, the random programs and the program `tandem`.

# <torch/torch.h> is by far the slowest header, so it is precompiled once, for the models, the program and the tests together;
# a precompiled header serves only targets with equal options, and those all take them from here.
add_library(tandem_user_flags INTERFACE)
target_compile_options(tandem_user_flags INTERFACE $<$<CONFIG:Release>:-O1>)
target_link_libraries(tandem_user_flags INTERFACE tandem tandem_flags)
if(TANDEM_TESTS)
  target_compile_options(tandem_user_flags INTERFACE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  target_include_directories(tandem_user_flags SYSTEM INTERFACE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_INCLUDE_DIRECTORIES>)
endif()

file(WRITE ${CMAKE_BINARY_DIR}/generated/empty.cpp.in "")
configure_file(${CMAKE_BINARY_DIR}/generated/empty.cpp.in ${CMAKE_BINARY_DIR}/generated/empty.cpp COPYONLY)
add_library(tandem_torch_header OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/empty.cpp)
target_link_libraries(tandem_torch_header PRIVATE tandem_user_flags)
target_precompile_headers(tandem_torch_header PRIVATE ${PROJECT_SOURCE_DIR}/tests/precompiled.h)

file(GLOB TANDEM_MODEL_SOURCES CONFIGURE_DEPENDS bench/*.cpp)
if(TANDEM_MODEL_SOURCES)
  add_library(tandem_models STATIC ${TANDEM_MODEL_SOURCES})
  target_include_directories(tandem_models PUBLIC bench)
  target_link_libraries(tandem_models PUBLIC tandem_user_flags)
  target_precompile_headers(tandem_models REUSE_FROM tandem_torch_header)
endif()

file(GLOB TANDEM_FUZZ_SOURCES CONFIGURE_DEPENDS fuzz/*.cpp)
add_library(tandem_fuzz STATIC ${TANDEM_FUZZ_SOURCES})
target_include_directories(tandem_fuzz PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(tandem_fuzz PUBLIC tandem_user_flags PRIVATE nlohmann_json::nlohmann_json)
target_precompile_headers(tandem_fuzz REUSE_FROM tandem_torch_header)

file(GLOB TANDEM_PROGRAM_SOURCES CONFIGURE_DEPENDS src/cli/*.cpp)
if(TANDEM_PROGRAM_SOURCES)
  add_executable(tandem_program ${TANDEM_PROGRAM_SOURCES})
  set_target_properties(tandem_program PROPERTIES OUTPUT_NAME tandem INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${TORCH_INSTALL_PREFIX}/lib")
  target_include_directories(tandem_program PRIVATE src bench)
  target_compile_definitions(tandem_program PRIVATE TANDEM_VERSION="${PROJECT_VERSION}" TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(tandem_program PRIVATE tandem_user_flags $<TARGET_NAME_IF_EXISTS:tandem_models> tandem_fuzz CLI11::CLI11 nlohmann_json::nlohmann_json)
  target_precompile_headers(tandem_program REUSE_FROM tandem_torch_header)
endif()
