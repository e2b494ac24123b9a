# The Python package `tandem`: the extension module tandem._C with the files of python/tandem around it, in
# <build>/python and in a wheel.

set(TANDEM_PYTHON AUTO CACHE STRING
    "Build the Python package: ON, OFF, or AUTO: where the Python whose torch is used has its headers")

# Asked for after libtorch: its CMake files look for a Python of their own, which forgets
# what was found before.
find_package(Python 3.11 COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

set(missing "")
if(TANDEM_SANITIZE)
  set(missing "a Python that is not instrumented cannot load sanitizers")
elseif(NOT Python_Interpreter_FOUND)
  set(missing "no Python 3.11 or newer was found (name one by -DPython_EXECUTABLE)")
elseif(NOT Python_Development.Module_FOUND)
  string(CONCAT missing "the headers of ${Python_EXECUTABLE}, Python ${Python_VERSION}, are not installed "
         "(Debian: python3-dev)")
elseif(NOT TANDEM_PYTHON_TORCH)
  set(missing "${Python_EXECUTABLE} has no torch (name a Python that has one by -DPython_EXECUTABLE)")
else()
  file(REAL_PATH ${TANDEM_PYTHON_TORCH} of_python)
  file(REAL_PATH ${TORCH_INSTALL_PREFIX} of_library)
  if(NOT of_python STREQUAL of_library)
    string(CONCAT missing "${Python_EXECUTABLE} has its torch in ${of_python}, and libtorch is taken from "
           "${of_library} (name one Python by -DPython_EXECUTABLE)")
  endif()
endif()
if(missing AND TANDEM_PYTHON STREQUAL "AUTO")
  message(NOTICE "The Python package is not built: ${missing}.")
elseif(missing AND TANDEM_PYTHON)
  message(FATAL_ERROR "The Python package cannot be built: ${missing}.")
endif()
if(missing OR NOT TANDEM_PYTHON)
  return()
endif()

set(package ${PROJECT_BINARY_DIR}/python/tandem)

file(GLOB sources CONFIGURE_DEPENDS python/extension/*.cpp)
python_add_library(tandem_python MODULE WITH_SOABI ${sources})
set_target_properties(tandem_python PROPERTIES OUTPUT_NAME _C LIBRARY_OUTPUT_DIRECTORY ${package}
                      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      INSTALL_RPATH "$ORIGIN;$ORIGIN/../torch/lib")
target_include_directories(tandem_python PRIVATE src python/extension)
target_compile_definitions(tandem_python PRIVATE TANDEM_VERSION="${PROJECT_VERSION}")
target_link_libraries(tandem_python PRIVATE tandem tandem_flags
                      ${TORCH_INSTALL_PREFIX}/lib/libtorch_python.so)
target_link_options(tandem_python PRIVATE $<$<PLATFORM_ID:Linux>:LINKER:--exclude-libs,ALL>)
target_precompile_headers(tandem_python PRIVATE python/extension/precompiled.h)
tandem_compile_in_batches(tandem_python)

# What the package was built with, for the check that it is imported beside the same.
set(print_versions "import runpy, sys
version = runpy.run_path(sys.argv[1])
print(repr(str(version['__version__'])), repr(version['cuda']), sep=';')")
execute_process(COMMAND ${Python_EXECUTABLE} -c "${print_versions}" ${TANDEM_PYTHON_TORCH}/version.py
                OUTPUT_VARIABLE built_with OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET built_with 0 TANDEM_TORCH_VERSION)
list(GET built_with 1 TANDEM_TORCH_CUDA)
configure_file(cmake/_build.py.in ${package}/_build.py)

# The build folder's package is made of links, so that what is edited is what is imported.
function(tandem_link target link)
  if(NOT EXISTS ${link} AND NOT IS_SYMLINK ${link})
    cmake_path(GET link PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    file(CREATE_LINK ${target} ${link} SYMBOLIC)
  endif()
endfunction()
file(GLOB_RECURSE links ${package}/*.py ${package}/*.pyi)
foreach(link ${links})
  if(NOT EXISTS ${link})
    file(REMOVE ${link})
  endif()
endforeach()
file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python/tandem
     python/tandem/*.py python/tandem/*.pyi python/tandem/py.typed)
foreach(file ${files})
  tandem_link(${PROJECT_SOURCE_DIR}/python/tandem/${file} ${package}/${file})
endforeach()
tandem_link(../../../tandem ${package}/bin/tandem)
# torch.compile finds the backend of a package by its metadata; a wheel's are those of pyproject.toml.
set(metadata ${PROJECT_BINARY_DIR}/python/tandem-${PROJECT_VERSION}.dist-info)
file(CONFIGURE OUTPUT ${metadata}/METADATA
     CONTENT "Metadata-Version: 2.1\nName: tandem\nVersion: ${PROJECT_VERSION}\n")
file(CONFIGURE OUTPUT ${metadata}/entry_points.txt
     CONTENT "[torch_dynamo_backends]\ntandem = tandem.dynamo:backend\n")

# A wheel takes the Python files itself and this component for the rest, all below the package's folder. One
# build serves an install prefix and a wheel, and only the wheel has libtorch at a place known beforehand, so
# its library and its program get their own search paths after they are copied; a wheel cannot hold links, so
# the library comes under the one name that is looked up.
function(tandem_into_wheel target path rpath)
  install(CODE "
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${path}\")
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY \${folder})
    file(COPY_FILE \"$<TARGET_FILE:${target}>\" \${file})
    file(RPATH_SET FILE \${file} NEW_RPATH \"${rpath}\")"
    COMPONENT python EXCLUDE_FROM_ALL)
endfunction()
tandem_into_wheel(tandem $<TARGET_SONAME_FILE_NAME:tandem> "\\$ORIGIN/../torch/lib")
tandem_into_wheel(tandem_program bin/tandem "\\$ORIGIN/../../torch/lib")
if(TARGET tandem_llvm)
  install(TARGETS tandem_llvm LIBRARY DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
endif()
install(TARGETS tandem_python LIBRARY DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${package}/_build.py DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
install(DIRECTORY data DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
install(FILES bench/torch_models.py bench/torch_peers.py DESTINATION bench COMPONENT python EXCLUDE_FROM_ALL)
