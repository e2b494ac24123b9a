# A hash over our code, which is part of every cache key: over the object files, so that it is the same in the
# library and in programs that hold the code themselves, and over the sources of the plugin that compiles, so
# that it is the same where that is not built. Run as a script it writes the source that holds it; takes:
# OBJECTS (a file that lists them), OUTPUT.

if(CMAKE_SCRIPT_MODE_FILE)
  file(STRINGS ${OBJECTS} objects)
  set(hashes "")
  foreach(object ${objects})
    file(SHA256 ${object} hash)
    string(APPEND hashes ${hash})
  endforeach()
  string(SHA256 hash "${hashes}")
  file(WRITE ${OUTPUT} "#include \"base/code_hash.h\"\n\n"
                       "const char* const tandem::code_hash = \"${hash}\";\n")
  return()
endif()

file(GLOB hashed CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/native/llvm/*)
list(PREPEND hashed ${TANDEM_OBJECTS})
set(list ${PROJECT_BINARY_DIR}/hashed_objects.txt)
set(source ${PROJECT_BINARY_DIR}/code_hash.cpp)
file(GENERATE OUTPUT ${list} CONTENT "$<JOIN:${hashed},\n>\n")
add_custom_command(OUTPUT ${source}
                   COMMAND ${CMAKE_COMMAND} -DOBJECTS=${list} -DOUTPUT=${source} -P ${CMAKE_CURRENT_LIST_FILE}
                   DEPENDS ${hashed} ${list} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
add_library(tandem_code_hash OBJECT ${source})
set_target_properties(tandem_code_hash PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
target_include_directories(tandem_code_hash PRIVATE src)
target_link_libraries(tandem_code_hash PRIVATE tandem_flags)
