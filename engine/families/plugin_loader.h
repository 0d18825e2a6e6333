#ifndef TENSORD_ENGINE_FAMILIES_PLUGIN_LOADER_H_
#define TENSORD_ENGINE_FAMILIES_PLUGIN_LOADER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/op_def.h"

namespace tensord {

struct FamilyPlugin;  // family_plugin.h

// Checks that the plugin is made for this very build and that its ops are sound: named like the family's messages,
// unknown to all of `known`, with a type rule, and either expanded or run by the kernels of some device.
// INVALID_ARGUMENT with one line on the fault otherwise.
absl::Status AuditFamilyPlugin(const FamilyPlugin& plugin, absl::Span<const absl::Span<const OpDef>> known);

// Opens the shared object, for the rest of the process, and audits its plugin. INVALID_ARGUMENT, naming the path.
absl::StatusOr<const FamilyPlugin*> LoadFamilyPlugin(const std::string& path,
                                                     absl::Span<const absl::Span<const OpDef>> known);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_PLUGIN_LOADER_H_
