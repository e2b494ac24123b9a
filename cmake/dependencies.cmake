# libtorch comes from CMAKE_PREFIX_PATH or Torch_DIR, else from the Python in use; the small libraries from
# installed packages or from TANDEM_DEPS.

find_package(Torch 2.11 REQUIRED HINTS ${TANDEM_PYTHON_TORCH}/share/cmake/Torch)
find_library(LIBDW dw)
find_package(Threads REQUIRED)

function(tandem_header_library name)
  if(NOT TARGET ${name})
    add_library(${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${name} INTERFACE ${TANDEM_DEPS}/include)
    target_compile_definitions(${name} INTERFACE ${ARGN})
  endif()
endfunction()

function(tandem_googletest_from_source)
  find_path(GTEST_SOURCE src/gtest-all.cc PATHS ${TANDEM_DEPS}/src/googletest PATH_SUFFIXES googletest
            NO_DEFAULT_PATH REQUIRED)
  add_library(tandem_gtest STATIC EXCLUDE_FROM_ALL
              ${GTEST_SOURCE}/src/gtest-all.cc ${GTEST_SOURCE}/src/gtest_main.cc)
  target_include_directories(tandem_gtest SYSTEM PUBLIC ${GTEST_SOURCE}/include PRIVATE ${GTEST_SOURCE})
  target_link_libraries(tandem_gtest PUBLIC Threads::Threads)
  add_library(GTest::gtest ALIAS tandem_gtest)
  add_library(GTest::gtest_main ALIAS tandem_gtest)
endfunction()

function(tandem_crypto_from_folder)
  find_path(CRYPTO_INCLUDE openssl/evp.h HINTS ${TANDEM_DEPS}/include REQUIRED)
  find_library(CRYPTO_LIBRARY NAMES crypto libcrypto.so.3 HINTS ${TANDEM_DEPS}/lib REQUIRED)
  add_library(OpenSSL::Crypto UNKNOWN IMPORTED GLOBAL)
  set_target_properties(OpenSSL::Crypto PROPERTIES IMPORTED_LOCATION ${CRYPTO_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${CRYPTO_INCLUDE})
endfunction()

if(TANDEM_DEPS)
  if(EXISTS ${TANDEM_DEPS}/include/fmt/core.h)
    set(fmt_definitions SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)
  endif()
  tandem_header_library(spdlog::spdlog_header_only ${fmt_definitions})
  tandem_header_library(nlohmann_json::nlohmann_json)
  tandem_header_library(CLI11::CLI11)
  find_package(OpenSSL QUIET COMPONENTS Crypto)
  if(NOT TARGET OpenSSL::Crypto)
    tandem_crypto_from_folder()
  endif()
  if(TANDEM_TESTS)
    tandem_googletest_from_source()
  endif()
else()
  find_package(spdlog REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(OpenSSL REQUIRED COMPONENTS Crypto)
  if(TANDEM_TESTS)
    find_package(GTest REQUIRED)
  endif()
endif()

# Boost.Graph's max-flow, which is headers alone.
find_path(BOOST_INCLUDE boost/graph/boykov_kolmogorov_max_flow.hpp HINTS ${TANDEM_DEPS}/include REQUIRED)
add_library(tandem_boost INTERFACE IMPORTED GLOBAL)
target_include_directories(tandem_boost SYSTEM INTERFACE ${BOOST_INCLUDE})

# Without zstd the cache is kept uncompressed, and what another build compressed is refused with a
# sentence that says so.
add_library(tandem_zstd INTERFACE IMPORTED GLOBAL)
find_path(ZSTD_INCLUDE zstd.h HINTS ${TANDEM_DEPS}/include)
find_library(ZSTD_LIBRARY NAMES zstd libzstd.so.1 HINTS ${TANDEM_DEPS}/lib)
if(ZSTD_INCLUDE AND ZSTD_LIBRARY)
  target_include_directories(tandem_zstd INTERFACE ${ZSTD_INCLUDE})
  target_compile_definitions(tandem_zstd INTERFACE TANDEM_HAVE_ZSTD)
  target_link_libraries(tandem_zstd INTERFACE ${ZSTD_LIBRARY})
else()
  message(STATUS "No zstd: the cache is kept uncompressed")
endif()

# Without hiredis a remote cache cannot be used, and whoever asks for one is told so.
add_library(tandem_hiredis INTERFACE IMPORTED GLOBAL)
find_path(HIREDIS_INCLUDE hiredis/hiredis.h HINTS ${TANDEM_DEPS}/include)
find_library(HIREDIS_LIBRARY hiredis HINTS ${TANDEM_DEPS}/lib)
if(HIREDIS_INCLUDE AND HIREDIS_LIBRARY)
  target_include_directories(tandem_hiredis INTERFACE ${HIREDIS_INCLUDE})
  target_compile_definitions(tandem_hiredis INTERFACE TANDEM_HAVE_HIREDIS)
  target_link_libraries(tandem_hiredis INTERFACE ${HIREDIS_LIBRARY})
else()
  message(STATUS "No hiredis: there is no remote cache")
endif()
