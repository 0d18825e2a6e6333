#include "server/config/reloader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "engine/base/status_macros.h"
#include "server/config/config_file.h"
#include "server/config/flat_settings.h"

namespace tensord::server {

Reloader::Reloader(ServerConfig running, std::vector<ReloadablePart> parts)
    : parts_(std::move(parts)), running_(std::move(running)) {}

ServerConfig Reloader::running() const {
  MutexLock lock(&mutex_);
  return running_;
}

namespace {

bool Takes(const ReloadablePart& part, const std::string& setting) {
  return std::any_of(part.settings.begin(), part.settings.end(),
                     [&](const std::string& of) { return setting == of || absl::StartsWith(setting, of + "."); });
}

}  // namespace

bool Reloader::CanChange(const std::string& setting) const {
  return Reloads(setting) &&
         std::any_of(parts_.begin(), parts_.end(), [&](const ReloadablePart& part) { return Takes(part, setting); });
}

absl::StatusOr<Reloader::Outcome> Reloader::Reload(const ServerConfig& next,
                                                   const std::function<void(const Outcome&)>& tell) {
  MutexLock lock(&mutex_);
  Outcome outcome;
  ServerConfig merged = running_;
  for (std::string& setting : ChangedSettings(running_, next)) {
    if (CanChange(setting)) {
      CopySetting(setting, next, &merged);
      outcome.changed.push_back(std::move(setting));
    } else {
      outcome.need_restart.push_back(std::move(setting));
    }
  }
  // Old and new values together are a configuration that nobody has looked at yet.
  RETURN_IF_ERROR(ValidateConfig(merged));
  ASSIGN_OR_RETURN(const std::vector<ReloadablePart::Commit> commits, Prepare(merged, outcome.changed));
  if (tell != nullptr) tell(outcome);
  for (const ReloadablePart::Commit& commit : commits) commit();
  running_ = std::move(merged);
  return outcome;
}

absl::Status Reloader::ReloadFiles() {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const std::vector<ReloadablePart::Commit> commits, Prepare(running_, {}));
  for (const ReloadablePart::Commit& commit : commits) commit();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ReloadablePart::Commit>> Reloader::Prepare(const ServerConfig& config,
                                                                      const std::vector<std::string>& changed) const {
  std::vector<ReloadablePart::Commit> commits;
  for (const ReloadablePart& part : parts_) {
    const bool is_concerned =
        part.reads_files ||
        std::any_of(changed.begin(), changed.end(), [&](const std::string& setting) { return Takes(part, setting); });
    if (!is_concerned) continue;
    ASSIGN_OR_RETURN(ReloadablePart::Commit commit, part.prepare(config));
    commits.push_back(std::move(commit));
  }
  return commits;
}

}  // namespace tensord::server
