# cpack: Debian packages of an installation in /usr (the preset `package`), one for each component.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tensord)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR tensord)
set(CPACK_PACKAGE_CONTACT "tensord's maintainers <maintainers@tensord.invalid>")
set(CPACK_COMPONENTS_ALL client client-dev)
if(NOT TENSORD_CLIENT_ONLY)
  list(APPEND CPACK_COMPONENTS_ALL server)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_SET_DESTDIR ON) # some files lie outside of the prefix
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

# Libraries by dpkg-shlibdeps: which packages have them, in which versions.
set(CPACK_DEBIAN_SERVER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SHLIBDEPS ON)
# Packages of programs that are linked with ours find it too.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME tensord)
set(CPACK_COMPONENT_SERVER_DESCRIPTION "evaluates tensor graphs for clients over gRPC\nThe server, and tensordctl, its command line.")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS systemd)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
                                              ${PROJECT_SOURCE_DIR}/deploy/debian/prerm)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libtensord-client)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "C++ client of tensord\nThe shared library that programs are linked with.")

set(CPACK_DEBIAN_CLIENT-DEV_PACKAGE_NAME libtensord-client-dev)
set(CPACK_DEBIAN_CLIENT-DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_CLIENT-DEV_DESCRIPTION "C++ client of tensord, for development\nHeaders, the .proto files of the contract, and the files by which CMake and pkg-config find them.")
# What its headers include, and what gRPC's CMake package asks for besides its own development package.
set(CPACK_DEBIAN_CLIENT-DEV_PACKAGE_DEPENDS
    "libtensord-client (= ${PROJECT_VERSION}), libabsl-dev, libgrpc++-dev, libprotobuf-dev, protobuf-compiler, protobuf-compiler-grpc")

include(CPack)
