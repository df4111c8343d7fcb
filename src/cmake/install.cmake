# What `cmake --install` and CPack lay down: libraries, header, pkg-config file, CMake package, program, manual page, licence.
include(CMakePackageConfigHelpers)

set(PROOFINFER_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/proofinfer")

install(FILES "${PROJECT_SOURCE_DIR}/include/proofinfer.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# One export file a library, so that each can be installed and found without the other.
foreach(component shared static)
  set(target proofinfer)
  if(component STREQUAL "static")
    set(target proofinfer_static)
  endif()
  if(TARGET ${target})
    install(TARGETS ${target} EXPORT proofinfer-${component}
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
      INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(EXPORT proofinfer-${component} NAMESPACE proofinfer:: DESTINATION "${PROOFINFER_PACKAGE_DIR}")
  endif()
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/src/cmake/proofinferConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/proofinferConfig.cmake" INSTALL_DESTINATION "${PROOFINFER_PACKAGE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/proofinferConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/proofinferConfig.cmake" "${PROJECT_BINARY_DIR}/proofinferConfigVersion.cmake"
  DESTINATION "${PROOFINFER_PACKAGE_DIR}")

# The pkg-config file finds its prefix from its own place, so that an installed tree can be moved and `cmake --install --prefix` is right;
# directories that were given as absolute paths stay what they are.
set(PROOFINFER_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE up)
  set(PROOFINFER_PC_PREFIX "\${pcfiledir}/${up}")
  string(REGEX REPLACE "/$" "" PROOFINFER_PC_PREFIX "${PROOFINFER_PC_PREFIX}")
endif()
foreach(directory LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${directory}}")
    set(PROOFINFER_PC_${directory} "${CMAKE_INSTALL_${directory}}")
  else()
    set(PROOFINFER_PC_${directory} "\${prefix}/${CMAKE_INSTALL_${directory}}")
  endif()
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/proofinfer.pc.in" "${PROJECT_BINARY_DIR}/proofinfer.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/proofinfer.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(TARGET proofinfer_program)
  install(TARGETS proofinfer_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  if(EXISTS "${PROJECT_SOURCE_DIR}/docs/man/proofinfer.1")
    install(FILES "${PROJECT_SOURCE_DIR}/docs/man/proofinfer.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  endif()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME proofinfer)
set(CPACK_PACKAGE_VENDOR "The proofinfer authors")
set(CPACK_PACKAGE_CONTACT "The proofinfer authors <proofinfer@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
