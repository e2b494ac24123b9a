# The plugin that compiles kernels: LLVM's code generation for x86-64, linked into a library of its own that
# Tandem opens when something must be compiled. Without LLVM 19 everything else is built.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  find_package(LLVM 19.1 QUIET CONFIG)
endif()
if(NOT LLVM_FOUND OR NOT "X86" IN_LIST LLVM_TARGETS_TO_BUILD)
  message(STATUS "No LLVM 19 for x86-64: machine code is loaded, and not made")
  return()
endif()
llvm_map_components_to_libnames(llvm_libraries x86codegen x86desc x86info)

# What libtorch and sanitizers ask of our code is nothing that LLVM's libraries were compiled with.
file(GLOB sources CONFIGURE_DEPENDS src/native/llvm/*.cpp)
add_library(tandem_llvm MODULE ${sources} src/loops/analysis.cpp src/loops/operators.cpp)
set_target_properties(tandem_llvm PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
target_include_directories(tandem_llvm PRIVATE src)
target_include_directories(tandem_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_features(tandem_llvm PRIVATE cxx_std_20)
target_compile_options(tandem_llvm PRIVATE ${TANDEM_WARNINGS})
target_link_libraries(tandem_llvm PRIVATE ${llvm_libraries})
# Nothing but its one name is seen, so that it and another LLVM in a process do not meet.
set(exported ${CMAKE_CURRENT_SOURCE_DIR}/src/native/llvm/exported.map)
target_link_options(tandem_llvm PRIVATE LINKER:--version-script=${exported} LINKER:--gc-sections)
set_target_properties(tandem_llvm PROPERTIES LINK_DEPENDS ${exported})
# Who has Tandem has it.
foreach(target tandem tandem_program)
  add_dependencies(${target} tandem_llvm)
endforeach()
