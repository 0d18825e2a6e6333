#include "engine/families/plugin_loader.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/families/family_plugin.h"

namespace tensord {
namespace {

// All kinds of devices, also those for which this build has no backend.
constexpr absl::string_view kDeviceKinds[] = {"cpu", "cuda"};

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// "package.v1.Message": words of letters, digits and underscores with dots between them, two at least.
bool IsMessageName(absl::string_view name) {
  bool has_dot = false, in_word = false;
  for (char c : name) {
    if (c == '.') {
      if (!in_word) return false;
      has_dot = true;
      in_word = false;
    } else if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_') {
      in_word = true;
    } else {
      return false;
    }
  }
  return has_dot && in_word;
}

absl::Status AuditAttributes(const OpDef& op) {
  absl::flat_hash_set<absl::string_view> names;
  for (const AttrDef& attr : op.attrs) {
    if (attr.name.empty() || !names.insert(attr.name).second) {
      return Wrong(
          absl::StrCat("the op ", op.name, " has an attribute without a name, or two named \"", attr.name, "\""));
    }
    if (attr.kind == AttrKind::kEnum && attr.enumerators.empty()) {
      return Wrong(absl::StrCat("the op ", op.name, " has an attribute without enumerators: ", attr.name));
    }
  }
  return absl::OkStatus();
}

absl::Status AuditOp(const OpDef& op, absl::string_view family, size_t index) {
  if (!IsMessageName(op.name)) {
    return Wrong(absl::StrCat("the op \"", op.name, "\" is not named like a message: package.v1.Name"));
  }
  if (op.family != family || op.index != index) {
    return Wrong(absl::StrCat("the op ", op.name, " says it is number ", op.index, " of the family \"", op.family,
                              "\", and is number ", index, " of \"", family, "\""));
  }
  if (op.op_class != OpClass::kExtension)
    return Wrong(absl::StrCat("the op ", op.name, " is not of the class kExtension"));
  if (!op.infer.has()) return Wrong(absl::StrCat("the op ", op.name, " has no type rule"));
  if (op.num_results < 1 || op.min_operands < 0 || op.max_operands < op.min_operands) {
    return Wrong(absl::StrCat("the op ", op.name, " takes ", op.min_operands, " to ", op.max_operands,
                              " operands and has ", op.num_results, " results, which cannot be"));
  }
  if (op.dtypes.empty()) return Wrong(absl::StrCat("the op ", op.name, " takes no dtype"));
  return AuditAttributes(op);
}

// Audits the tables: one a kind of device. Only the backend can read inside one.
absl::Status AuditTables(absl::Span<const DeviceKernels> tables) {
  absl::flat_hash_set<absl::string_view> kinds;
  for (const DeviceKernels& table : tables) {
    const absl::string_view kind = table.device_kind == nullptr ? "" : table.device_kind;
    if (!absl::c_linear_search(kDeviceKinds, kind)) {
      return Wrong(absl::StrCat("it has kernels for devices of the kind \"", kind, "\"; there are ",
                                absl::StrJoin(kDeviceKinds, " and ")));
    }
    if (!kinds.insert(kind).second) return Wrong(absl::StrCat("it has two tables of kernels for ", kind));
    if (table.table == nullptr && table.count > 0)
      return Wrong(absl::StrCat("its kernels for ", kind, " have no table"));
  }
  return absl::OkStatus();
}

// Returns the reason why the server must not run the file; empty if it may. Checked as files of keys are.
std::string WhyNotTrusted(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return absl::StrCat("cannot be read: ", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return "is no file";
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return absl::StrCat("it belongs to user ", info.st_uid,
                        ", and what it holds runs as the server; chown it to root or to the server's user");
  }
  if ((info.st_mode & 0022) == 0) return "";
  return absl::StrFormat("more than its owner may write it, mode %04o; chmod go-w", info.st_mode & 07777);
}

}  // namespace

absl::Status AuditFamilyPlugin(const FamilyPlugin& plugin, absl::Span<const absl::Span<const OpDef>> known) {
  if (plugin.magic != kFamilyPluginMagic) return Wrong("what it holds is no tensord::FamilyPlugin");
  if (plugin.abi != kFamilyPluginAbi) {
    return Wrong(absl::StrCat("it has version ", plugin.abi, " of the plugins' interface, and this server has version ",
                              kFamilyPluginAbi));
  }
  const absl::string_view build = plugin.build == nullptr ? "" : plugin.build;
  if (build != kFamilyPluginBuild) {
    return Wrong(absl::StrCat("it was made for \"", build, "\", and this server is \"", kFamilyPluginBuild,
                              "\"; compile it again"));
  }
  const absl::string_view interface = plugin.interface == nullptr ? "" : plugin.interface;
  if (interface != kFamilyPluginInterface) {
    return Wrong(absl::StrCat("it was compiled against other headers of tensord (their hash is \"", interface,
                              "\") than this server (\"", kFamilyPluginInterface,
                              "\"); compile it again, with this server's headers"));
  }
  const absl::string_view family = plugin.family == nullptr ? "" : plugin.family;
  if (family.empty() || plugin.num_ops == 0 || plugin.ops == nullptr)
    return Wrong("it has no family, or one without ops");
  absl::flat_hash_set<absl::string_view> names;
  for (absl::Span<const OpDef> other : known) {
    if (!other.empty() && other[0].family == family) {
      return Wrong(absl::StrCat("there is a family \"", family, "\" already"));
    }
    for (const OpDef& op : other) names.insert(op.name);
  }
  const absl::Span<const OpDef> ops(plugin.ops, plugin.num_ops);
  if (plugin.kernels == nullptr && plugin.num_kernels > 0) return Wrong("it says that it has kernels, and has none");
  const absl::Span<const DeviceKernels> kernels(plugin.kernels, plugin.num_kernels);
  RETURN_IF_ERROR(AuditTables(kernels));
  for (size_t i = 0; i < ops.size(); ++i) {
    RETURN_IF_ERROR(AuditOp(ops[i], family, i));
    if (!names.insert(ops[i].name).second) return Wrong(absl::StrCat("there is an op ", ops[i].name, " already"));
  }
  return absl::OkStatus();
}

absl::StatusOr<const FamilyPlugin*> LoadFamilyPlugin(const std::string& path,
                                                     absl::Span<const absl::Span<const OpDef>> known) {
  const auto wrong = [&path](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("the plugin ", path, " cannot be loaded: ", what));
  };
  // A bare name would be looked for in the system's folders.
  if (!absl::StrContains(path, '/')) return wrong("name it by a path with a folder");
  // Before the load, which runs code at once.
  if (const std::string why = WhyNotTrusted(path); !why.empty()) return wrong(why);
  // Resolves all symbols now, so that one that the server lacks is an error here; never closed.
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    const char* const why = dlerror();
    return wrong(why == nullptr ? "the system does not say why" : why);
  }
  void* const symbol = dlsym(object, kFamilyPluginSymbol);
  if (symbol == nullptr) return wrong(absl::StrCat("it has no symbol ", kFamilyPluginSymbol));
  const FamilyPlugin* const plugin = reinterpret_cast<FamilyPluginEntry*>(symbol)();
  if (plugin == nullptr) return wrong(absl::StrCat(kFamilyPluginSymbol, " returns nothing"));
  const absl::Status sound = AuditFamilyPlugin(*plugin, known);
  if (!sound.ok()) return wrong(sound.message());
  return plugin;
}

}  // namespace tensord
