# Compiler, linker and sanitizer settings that every target shares.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Another project of which this is a part has said how it compiles.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The base folder makes hits possible across build trees and checkouts.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  ${CCACHE_PROGRAM})
endif()

find_program(LLD_PROGRAM ld.lld)
if(LLD_PROGRAM)
  add_link_options(-fuse-ld=lld)
endif()

# Symbols are bound at the start, and their table is read-only then.
add_link_options(-Wl,-z,relro -Wl,-z,now)

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -fno-math-errno -fno-trapping-math -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict) # GCC 12 warns of std::string's own operator+
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Joined sources include absolute paths (docs/why/0045-builds-join-sources.md): without this no two checkouts share a cache,
# and a binary tells where it was built.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

if(TENSORD_SANITIZE)
  add_compile_options(-fsanitize=${TENSORD_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TENSORD_SANITIZE})
  if(TENSORD_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()

if(TENSORD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
