# What cmake --install puts where, by component: server (with tensordctl), client (the shared library), client-dev (headers,
# contract, and how CMake and pkg-config find them). Packages of each: packages.cmake.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# All that an installation needs.
add_custom_target(tensord_installation)
add_dependencies(tensord_installation tensord_client_shared)
install(TARGETS tensord_client_shared EXPORT tensordTargets
        LIBRARY COMPONENT client NAMELINK_COMPONENT client-dev
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libtensord-client COMPONENT client)

install(DIRECTORY clients/cpp/include/ ${PROJECT_BINARY_DIR}/clients/cpp/include/ ${PROJECT_BINARY_DIR}/proto/tensord
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT client-dev FILES_MATCHING PATTERN "*.h")
set(proto_folder ${CMAKE_INSTALL_DATADIR}/tensord/proto)
install(DIRECTORY proto/tensord DESTINATION ${proto_folder} COMPONENT client-dev FILES_MATCHING PATTERN "*.proto")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tensord)
install(EXPORT tensordTargets NAMESPACE tensord:: DESTINATION ${package_folder} COMPONENT client-dev)
configure_package_config_file(deploy/cmake/tensordConfig.cmake.in ${PROJECT_BINARY_DIR}/install/tensordConfig.cmake
                              INSTALL_DESTINATION ${package_folder} PATH_VARS proto_folder)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/install/tensordConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/install/tensordConfig.cmake ${PROJECT_BINARY_DIR}/install/tensordConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT client-dev)

# Relative, so that an installation may be moved, and --prefix may come after the configuration.
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_of_pkgconfig /${pkgconfig_folder} /)
string(REGEX REPLACE "/$" "" prefix_of_pkgconfig "${prefix_of_pkgconfig}")
configure_file(deploy/cmake/tensord-client.pc.in ${PROJECT_BINARY_DIR}/install/tensord-client.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/install/tensord-client.pc DESTINATION ${pkgconfig_folder} COMPONENT client-dev)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libtensord-client-dev COMPONENT client-dev)
if(TENSORD_CLIENT_ONLY)
  return()
endif()

install(TARGETS tensord tensordctl RUNTIME COMPONENT server)

# tensord_page(FILE FOLDER PROGRAM [ARGUMENT]): the page that the program prints, as FILE in FOLDER.
function(tensord_page file folder program)
  set(page ${PROJECT_BINARY_DIR}/install/pages/${folder}/${file})
  get_filename_component(page_folder ${page} DIRECTORY)
  file(MAKE_DIRECTORY ${page_folder})
  add_custom_command(OUTPUT ${page} COMMAND ${program} ${ARGN} > ${page} DEPENDS ${program} VERBATIM)
  set_property(TARGET tensord_pages APPEND PROPERTY SOURCES ${page})
  install(FILES ${page} DESTINATION ${folder} COMPONENT server)
endfunction()
add_custom_target(tensord_pages ALL)
add_dependencies(tensord_installation tensord tensordctl tensord_pages)
tensord_page(tensord.8 ${CMAKE_INSTALL_MANDIR}/man8 tensord_manual_page)
tensord_page(tensordctl.1 ${CMAKE_INSTALL_MANDIR}/man1 tensordctl_pages man)
tensord_page(tensordctl ${CMAKE_INSTALL_DATADIR}/bash-completion/completions tensordctl_pages bash)
tensord_page(_tensordctl ${CMAKE_INSTALL_DATADIR}/zsh/site-functions tensordctl_pages zsh)
tensord_page(tensordctl.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d tensordctl_pages fish)

install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tensord COMPONENT server)
# Files whose places or contents depend on the prefix, which may be given as late as cmake --install does.
install(CODE "
  set(source_folder \"${PROJECT_SOURCE_DIR}\")
  set(build_folder \"${PROJECT_BINARY_DIR}\")
  set(binary_folder \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  set(notices_folder \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/doc/tensord/third-party\")
  include(\"${PROJECT_SOURCE_DIR}/deploy/cmake/install_service.cmake\")" COMPONENT server)
