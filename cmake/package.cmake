# find_package(tandem), from the build folder and from an install prefix.

include(CMakePackageConfigHelpers)

set(TANDEM_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
set_target_properties(tandem PROPERTIES INSTALL_RPATH "${TORCH_INSTALL_PREFIX}/lib")

install(TARGETS tandem EXPORT tandemTargets)
install(DIRECTORY include/tandem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tandem_program)
if(TARGET tandem_llvm)
  install(TARGETS tandem_llvm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT tandemTargets NAMESPACE tandem:: DESTINATION ${TANDEM_PACKAGE_DIR})
export(EXPORT tandemTargets NAMESPACE tandem:: FILE ${PROJECT_BINARY_DIR}/tandemTargets.cmake)

set(config ${PROJECT_BINARY_DIR}/tandemConfig.cmake)
set(version ${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake)
configure_package_config_file(cmake/tandemConfig.cmake.in ${config} INSTALL_DESTINATION ${TANDEM_PACKAGE_DIR}
                              NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${version} COMPATIBILITY SameMinorVersion)
install(FILES ${config} ${version} DESTINATION ${TANDEM_PACKAGE_DIR})
