# Every library that tensord links, with the target that carries it. Reasons are in docs/extend/dependencies.md.
if(NOT PROJECT_IS_TOP_LEVEL)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON) # who links the client is outside of this folder
endif()
find_package(Threads REQUIRED)
find_package(Protobuf 3.21 REQUIRED) # before gRPC; Debian has no config package
find_package(absl CONFIG REQUIRED)
find_package(gRPC CONFIG REQUIRED)
# Protocol Buffers stay a shared library: plugins bring messages of their own, and a process must have one registry of them.
# Sanitizers name libraries in their suppressions, so what they watch takes shared ones.
cmake_dependent_option(TENSORD_LINK_ARCHIVES "Make gRPC and Abseil parts of the binaries, where their archives are installed" ON
                       "NOT TENSORD_CLIENT_ONLY" OFF)
set(TENSORD_SHARED_RPC gRPC::grpc++ absl::flat_hash_map absl::random_random absl::span absl::status absl::statusor absl::str_format
                       absl::strings absl::time)
if(TENSORD_LINK_ARCHIVES AND NOT TENSORD_SANITIZE AND NOT TENSORD_FUZZ)
  include(archives)
  # For a shared library among binaries that have gRPC inside.
  tensord_shared_libraries(TENSORD_SHARED_RPC "gRPC::(grpc\\+\\+|grpc|gpr)|absl::.*")
  tensord_link_archives(gRPC absl)
endif()
find_package(OpenSSL REQUIRED)
if(TENSORD_CLIENT_ONLY)
  return()
endif()

find_package(spdlog CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SLEEF REQUIRED IMPORTED_TARGET sleef)
find_package(hwy CONFIG QUIET)
if(NOT TARGET hwy::hwy)
  pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
  add_library(hwy::hwy ALIAS PkgConfig::HWY)
endif()
# Headers only, for the code that the CPU backend makes of fused kernels; other processors run those without it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  find_path(XBYAK_INCLUDE_DIR xbyak/xbyak.h REQUIRED)
  set(TENSORD_HAS_JIT ON)
endif()

# Through the alternatives link, so that the administrator's choice of OpenBLAS flavour holds.
set(BLA_VENDOR OpenBLAS)
find_package(BLAS REQUIRED)
find_library(LAPACKE_LIBRARY lapacke REQUIRED)

# Built from source: fetched once, into build/sources of the checkout.
execute_process(COMMAND bash ${PROJECT_SOURCE_DIR}/deploy/dev/sources.sh RESULT_VARIABLE sources_result)
if(NOT sources_result EQUAL 0)
  message(FATAL_ERROR "The sources that deploy/dev/sources.txt names are not in build/sources: run bash deploy/dev/sources.sh")
endif()
file(STRINGS ${PROJECT_SOURCE_DIR}/deploy/dev/sources.txt ducc0_line REGEX "^ducc0 ")
string(REGEX REPLACE "^ducc0 +([^ ]+) .*" "\\1" ducc0_version "${ducc0_line}")
set(DUCC0_SOURCE_DIR ${PROJECT_SOURCE_DIR}/build/sources/ducc0-${ducc0_version})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/deploy/dev/sources.txt)

if(TENSORD_TESTS)
  find_package(GTest CONFIG REQUIRED)
  find_package(benchmark CONFIG REQUIRED)
endif()
