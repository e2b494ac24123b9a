# How our own code is compiled; nothing of this reaches a user of the library.

set(TANDEM_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers)
add_library(tandem_flags INTERFACE)
target_compile_options(tandem_flags INTERFACE ${TANDEM_WARNINGS} -Winvalid-pch)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # ccache needs it to see through a precompiled header.
  target_compile_options(tandem_flags INTERFACE -fpch-preprocess)
  # False alarms: in libtorch's inlined small vectors, in the C++ library's copies of strings, and (newer
  # compilers) for references to what a returned view refers to.
  target_compile_options(tandem_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds
                         -Wno-stringop-overflow)
  # A file of a batch is taken for a header.
  target_compile_options(tandem_flags INTERFACE -Wno-subobject-linkage)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(tandem_flags INTERFACE -Wno-dangling-reference)
  endif()
endif()
if(TANDEM_SANITIZE)
  target_compile_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=undefined)
  # It asks for type information that libtorch does not export.
  target_compile_options(tandem_flags INTERFACE -fno-sanitize=vptr)
  if(TANDEM_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # libtorch's counted pointers have a fence that the sanitizer does not see.
    target_compile_options(tandem_flags INTERFACE -Wno-tsan)
  endif()
  target_link_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(sloppiness pch_defines,time_macros,include_file_mtime,include_file_ctime)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=${sloppiness} ${CCACHE})
endif()
