# cmake -DSOURCE=… -DHEADER=… -DDEPFILE=… -P hash_plugin_interface.cmake: writes HEADER with a hash of the headers that a
# plugin is compiled against, and DEPFILE with their names. Both ends of families.plugins carry it: a plugin and the server.
cmake_minimum_required(VERSION 3.25)

# The headers that docs/extend/adding-a-family.md lets a plugin include; every header of the project that they include
# counts with them.
set(pending
    backends/cpu/kernel/family_kernel.h
    backends/cpu/machine/thread_pool.h
    engine/base/refusal.h
    engine/base/status_macros.h
    engine/families/family_plugin.h
    engine/ir/derivative.h
    engine/ir/graph_builder.h
    engine/tensor/literal.h)

set(headers "")
while(pending)
  list(POP_FRONT pending header)
  # Files that the build makes, HEADER among them, are none of the sources.
  if(header IN_LIST headers OR NOT EXISTS ${SOURCE}/${header})
    continue()
  endif()
  list(APPEND headers ${header})
  file(STRINGS ${SOURCE}/${header} includes REGEX "^ *# *include \"")
  list(TRANSFORM includes REPLACE "^[^\"]*\"([^\"]*)\".*$" "\\1")
  list(APPEND pending ${includes})
endwhile()

list(SORT headers)
set(hashes "")
set(paths "")
foreach(header IN LISTS headers)
  file(SHA256 ${SOURCE}/${header} hash)
  string(APPEND hashes "${header} ${hash}\n")
  string(REPLACE " " "\\ " path ${SOURCE}/${header})
  string(APPEND paths " \\\n  ${path}")
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
# Written only where it changes, so that nothing else is compiled again.
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT "// Made by deploy/cmake/hash_plugin_interface.cmake.
#ifndef TENSORD_ENGINE_FAMILIES_PLUGIN_INTERFACE_H_
#define TENSORD_ENGINE_FAMILIES_PLUGIN_INTERFACE_H_

namespace tensord {

// Of the headers that a plugin is compiled against.
inline constexpr char kFamilyPluginInterface[] = \"@hash@\";

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_PLUGIN_INTERFACE_H_
")
string(REPLACE " " "\\ " target ${HEADER})
file(WRITE ${DEPFILE} "${target}:${paths}\n")
