#ifndef TENSORD_ENGINE_FAMILIES_FAMILY_PLUGIN_H_
#define TENSORD_ENGINE_FAMILIES_FAMILY_PLUGIN_H_

#include <cstddef>
#include <cstdint>

#include "engine/families/plugin_interface.h"  // made by the build
#include "engine/ir/op_def.h"

// The build system says which version this is: the server's own, and for a plugin that of the tree it is compiled in.
#ifndef TENSORD_VERSION
#error "TENSORD_VERSION is not defined: make plugins with tensord_family_plugin of deploy/cmake/tensord_targets.cmake"
#endif

namespace tensord {

inline constexpr uint64_t kFamilyPluginMagic = 0x74656e736f726446;
// Counts the changes after which an old plugin would be misunderstood, unless compiled anew.
inline constexpr uint32_t kFamilyPluginAbi = 4;
inline constexpr char kFamilyPluginBuild[] = "tensord " TENSORD_VERSION " by the compiler " __VERSION__;
inline constexpr char kFamilyPluginSymbol[] = "tensord_family_plugin_v1";

// Kernels of one kind of device, as its backend declares them: an array of `count` cpu::FamilyKernel for "cpu".
struct DeviceKernels {
  const char* device_kind = nullptr;
  const void* table = nullptr;
  size_t count = 0;
};

// The interface of a shared object to the server that loads it: a family of ops from outside of the tree. All of it is
// constant and lives as long as the process, which never unloads a plugin.
//
//   extern "C" const tensord::FamilyPlugin* tensord_family_plugin_v1() { return &kPlugin; }
//
// The ops' messages are linked into the shared object, and are found by their names.
struct FamilyPlugin {
  // The first field to be read, which never moves.
  uint64_t magic = kFamilyPluginMagic;
  uint32_t abi = kFamilyPluginAbi;
  const char* build = kFamilyPluginBuild;
  const char* interface = kFamilyPluginInterface;
  // The fields that the ABI number stands for.
  const char* family = nullptr;
  const OpDef* ops = nullptr;
  size_t num_ops = 0;
  const DeviceKernels* kernels = nullptr;
  size_t num_kernels = 0;
};

using FamilyPluginEntry = const FamilyPlugin*();

}  // namespace tensord

extern "C" const tensord::FamilyPlugin* tensord_family_plugin_v1();

#endif  // TENSORD_ENGINE_FAMILIES_FAMILY_PLUGIN_H_
