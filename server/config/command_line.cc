#include "server/config/command_line.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "proto/command_line/nearest_name.h"
#include "server/config/config_file.h"

namespace tensord::server {
namespace {

struct Flag {
  absl::string_view name;
  absl::string_view value;  // what it takes; empty: nothing
  absl::string_view help;
  bool may_repeat = false;
};

constexpr Flag kFlags[] = {
    {"listen", "ADDRESS",
     "unix:/path or host:port, port 0 for a free one; may be repeated (default: unix:$XDG_RUNTIME_DIR/tensord.sock)",
     true},
    {"allow-insecure-listen", "",
     "let --listen name an address beyond this machine without TLS; connections are not encrypted then"},
    {"metrics", "HOST:PORT", "serve Prometheus metrics at http://HOST:PORT/metrics, and /healthz and /readyz there"},
    {"admin", "ADDRESS", "serve tensord.v1.Admin for operators at unix:/path or host:port; as --set=admin.listen"},
    {"cache-dir", "DIR", "keep compiled programs in DIR too; as --set=program_cache.disk_path"},
    {"config", "FILE", "read settings from FILE, JSON or protobuf text", true},
    {"set", "PATH=VALUE",
     "one setting, for example limits.rank=8; may be repeated. Bytes may have a unit: k, M, G, T of 1000, "
     "Ki, Mi, Gi, Ti of 1024",
     true},
    {"log-level", "LEVEL", "debug, info, warning, error or off"},
    {"check-config", "", "say whether the settings are right, and exit"},
    {"print-default-config", "", "print every setting with its default, its range and what it is for, and exit"},
    {"version", "", "print the version, and exit"},
    {"help", "", "print this, and exit"},
};

// Returns the names of all flags.
std::vector<std::string> FlagNames() {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) names.emplace_back(flag.name);
  return names;
}

const Flag* FindFlag(absl::string_view name) {
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

struct GivenFlag {
  const Flag* flag;
  std::string value;
};

absl::StatusOr<std::vector<GivenFlag>> SplitArguments(absl::Span<const std::string> arguments) {
  std::vector<GivenFlag> given;
  const auto is_given = [&given](const Flag* flag) {
    return std::any_of(given.begin(), given.end(), [flag](const GivenFlag& other) { return other.flag == flag; });
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view argument = arguments[i];
    if (argument == "-h") argument = "--help";
    if (!absl::StartsWith(argument, "--")) {
      return absl::InvalidArgumentError(absl::StrCat("\"", argument, "\" is no flag; see --help"));
    }
    argument.remove_prefix(2);
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    const Flag* flag = FindFlag(name);
    if (flag == nullptr) {
      const std::string meant = wire::DidYouMean(name, FlagNames(), "--");
      return absl::InvalidArgumentError(
          absl::StrCat("there is no flag --", name, meant.empty() ? "; see --help" : meant));
    }
    const bool has_value = equals != absl::string_view::npos;
    if (flag->value.empty() && has_value) {
      return absl::InvalidArgumentError(absl::StrCat("flag --", name, " takes no value"));
    }
    std::string value;
    if (has_value) {
      value = std::string(argument.substr(equals + 1));
    } else if (!flag->value.empty()) {
      if (++i == arguments.size()) {
        return absl::InvalidArgumentError(absl::StrCat("flag --", name, " needs a value: ", flag->value));
      }
      value = arguments[i];
    }
    if (!flag->value.empty() && !flag->may_repeat && is_given(flag)) {
      return absl::InvalidArgumentError(absl::StrCat("flag --", name, " is given twice"));
    }
    given.push_back({flag, std::move(value)});
  }
  return given;
}

absl::Status Apply(const GivenFlag& given, CommandLine* line) {
  const absl::string_view name = given.flag->name;
  if (name == "listen") {
    line->config.add_listen(given.value);
  } else if (name == "allow-insecure-listen") {
    line->config.set_allow_insecure_listen(true);
  } else if (name == "metrics") {
    line->config.set_metrics(given.value);
  } else if (name == "admin") {
    line->config.mutable_admin()->set_listen(given.value);
  } else if (name == "cache-dir") {
    line->config.mutable_program_cache()->set_disk_path(given.value);
  } else if (name == "set") {
    return SetConfigField(given.value, &line->config);
  } else if (name == "log-level") {
    line->config.mutable_log()->set_level(given.value);
  } else if (name == "check-config") {
    line->action = CommandLine::Action::kCheckConfig;
  } else if (name == "print-default-config") {
    line->action = CommandLine::Action::kPrintDefaultConfig;
  } else if (name == "version") {
    line->action = CommandLine::Action::kVersion;
  } else if (name == "help") {
    line->action = CommandLine::Action::kHelp;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(absl::Span<const std::string> arguments) {
  ASSIGN_OR_RETURN(const std::vector<GivenFlag> given, SplitArguments(arguments));
  CommandLine line;
  bool listens_given = false;
  for (const GivenFlag& flag : given) {
    if (flag.flag->name == "config") RETURN_IF_ERROR(MergeConfigFile(flag.value, &line.config));
    listens_given |= flag.flag->name == "listen";
  }
  if (listens_given) line.config.clear_listen();
  for (const GivenFlag& flag : given) RETURN_IF_ERROR(Apply(flag, &line));
  RETURN_IF_ERROR(ValidateConfig(line.config));
  return line;
}

std::vector<std::string> ConfigFilesOf(absl::Span<const std::string> arguments) {
  std::vector<std::string> files;
  const absl::StatusOr<std::vector<GivenFlag>> given = SplitArguments(arguments);
  if (!given.ok()) return files;
  for (const GivenFlag& flag : *given) {
    if (flag.flag->name == "config") files.push_back(flag.value);
  }
  return files;
}

std::string HelpText() {
  std::string text =
      "tensord evaluates tensor graphs for gRPC clients.\n\n"
      "Usage: tensord [flags]\n\n";
  for (const Flag& flag : kFlags) {
    std::string left = absl::StrCat(flag.name == "help" ? "-h, --" : "--", flag.name);
    if (!flag.value.empty()) absl::StrAppend(&left, "=", flag.value);
    absl::StrAppendFormat(&text, "  %-24s %s\n", left, flag.help);
  }
  absl::StrAppend(
      &text,
      "\nThe bound addresses are printed one a line, \"listening grpc unix:/path\", as soon as the server is "
      "ready. SIGTERM and SIGINT\nlet calls in progress end and then stop it; a second signal stops it at once. SIGHUP "
      "makes it read\n--config and the files that it names again, and so does a change of them.\n");
  return text;
}

}  // namespace tensord::server
