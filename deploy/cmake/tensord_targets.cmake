# tensord_library(NAME DEPS…): a static library of the .cc files of the current folder. One library a folder, so
# that its DEPS are the layers that it may see. ROOMS are folders below it, whose files belong to it too: their layers are
# in deploy/dev/check_layers.py. GENERATED adds files that the build makes.
function(tensord_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;PRIVATE_DEPS;GENERATED;ROOMS" ${ARGN})
  list(TRANSFORM ARG_ROOMS REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/\\1/*.cc")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${ARG_ROOMS})
  if(sources OR ARG_GENERATED)
    add_library(${name} STATIC ${sources} ${ARG_GENERATED})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
    # Highway includes such a source in itself, once for each instruction set.
    foreach(source IN LISTS sources)
      file(STRINGS ${source} is_multi_target REGEX "hwy/foreach_target.h")
      if(is_multi_target)
        set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endforeach()
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# tensord_proto_library(NAME PROTOS…): a static library of messages.
function(tensord_proto_library name)
  add_library(${name} STATIC ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF) # generated files have the same names in them
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
  target_include_directories(${name} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR} ${PROJECT_BINARY_DIR})
  protobuf_generate(TARGET ${name} LANGUAGE cpp)
endfunction()

# tensord_binary(NAME SOURCES… DEPS…): an executable in <build>/bin.
function(tensord_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# tensord_add_to_group(GROUP NAME): building GROUP, a target of its own, builds NAME.
function(tensord_add_to_group group name)
  if(NOT TARGET ${group})
    add_custom_target(${group})
  endif()
  add_dependencies(${group} ${name})
endfunction()

# tensord_list_cases(NAME gtest|unittest FILES…): one line of tests.txt in the build folder, from which ./dev test PATTERN
# knows the cases of a test that is not built yet. A test and the target that builds what it needs have the same name.
file(WRITE ${PROJECT_BINARY_DIR}/tests.txt "")
function(tensord_list_cases name kind)
  list(JOIN ARGN " " files)
  file(APPEND ${PROJECT_BINARY_DIR}/tests.txt "${name} ${kind} ${files}\n")
endfunction()

# The label of the tests that the present build runs under a sanitizer: `sanitize` for memory, `threads` for races, which
# a test of one thread has none of (docs/why/0073-a-build-shows-what-it-alone-can.md).
set(TENSORD_SANITIZED_LABEL sanitize)
if(TENSORD_SANITIZE MATCHES "thread")
  set(TENSORD_SANITIZED_LABEL threads)
endif()

# tensord_sanitized(NAME LABELS…): makes NAME part of the target sanitize_tests, which is all that the presets asan and tsan
# build, where a label asks for it.
function(tensord_sanitized name)
  if(TENSORD_SANITIZED_LABEL IN_LIST ARGN)
    tensord_add_to_group(sanitize_tests ${name})
  endif()
endfunction()

# tensord_test(NAME [RECURSE] [SOURCES…] DEPS… LABELS… [COST N] [SHARDS N] [ENVIRONMENT…]): one test executable of SOURCES,
# by default the *_test.cc files of the current folder, with RECURSE of those below it too. A test of minutes says COST,
# about how many seconds: it is started first. With SHARDS it is N tests, NAME_1 and so on, which may run at once.
function(tensord_test name)
  cmake_parse_arguments(ARG "RECURSE" "COST;SHARDS" "SOURCES;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  set(glob GLOB)
  if(ARG_RECURSE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(ARG_SOURCES)
    list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main GTest::gmock)
  # Assertions are much code that runs once: optimizing it takes as long as compiling it. Libraries are as shipped.
  if(TENSORD_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  else()
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  tensord_sanitized(${name} ${ARG_LABELS})

  set(tests ${name})
  if(ARG_SHARDS)
    set(tests "")
    foreach(index RANGE 1 ${ARG_SHARDS})
      add_test(NAME ${name}_${index} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
               COMMAND ${PROJECT_SOURCE_DIR}/tests/testlib/run_shard.sh ${index} ${ARG_SHARDS} $<TARGET_FILE:${name}>)
      add_custom_target(${name}_${index} DEPENDS ${name})
      list(APPEND tests ${name}_${index})
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
  foreach(test ${tests})
    set_tests_properties(${test} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 900 ENVIRONMENT "${ARG_ENVIRONMENT}")
    if(ARG_COST)
      set_tests_properties(${test} PROPERTIES COST ${ARG_COST})
    endif()
    tensord_list_cases(${test} gtest ${sources})
  endforeach()
endfunction()

# tensord_python_test(NAME LABELS… NEEDS… FILES…): a test of unittest files of the current folder, with the distribution's
# Python: another one need not have grpcio. The environment names each binary that it needs: TENSORD_BINARY, for example.
function(tensord_python_test name)
  cmake_parse_arguments(ARG "" "" "LABELS;NEEDS;FILES" ${ARGN})
  set(environment PYTHONDONTWRITEBYTECODE=1)
  foreach(binary ${ARG_NEEDS})
    string(TOUPPER ${binary}_BINARY variable)
    list(APPEND environment ${variable}=$<TARGET_FILE:${binary}>)
  endforeach()
  list(TRANSFORM ARG_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  add_test(NAME ${name} COMMAND /usr/bin/python3 ${PROJECT_SOURCE_DIR}/tests/testlib/run_unittests.py ${ARG_FILES}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 900 ENVIRONMENT "${environment}")
  add_custom_target(${name} DEPENDS ${ARG_NEEDS})
  tensord_list_cases(${name} unittest ${ARG_FILES})
endfunction()

# tensord_family_plugin(NAME SOURCES… PROTOS…): a shared object with a family that a server loads (docs/extend/adding-a-family.md).
# What it uses of the engine and of Abseil it takes from the server's binary, so it links none of them.
function(tensord_family_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PROTOS" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES PREFIX "")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  target_compile_definitions(${name} PRIVATE TENSORD_VERSION="${PROJECT_VERSION}")
  target_include_directories(${name} SYSTEM PRIVATE $<TARGET_PROPERTY:absl::status,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${name} PRIVATE protobuf::libprotobuf)
  add_dependencies(${name} tensord_plugin_interface)
  if(ARG_PROTOS)
    protobuf_generate(TARGET ${name} LANGUAGE cpp PROTOS ${ARG_PROTOS} IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR}
                      PROTOC_OUT_DIR ${CMAKE_CURRENT_BINARY_DIR})
  endif()
endfunction()
