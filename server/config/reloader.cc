#include "server/config/reloader.h"

#include <algorithm>
#include <utility>

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

bool Reloader::CanChange(const std::string& setting) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const ReloadablePart& part) {
    return std::find(part.settings.begin(), part.settings.end(), setting) != part.settings.end();
  });
}

absl::StatusOr<Reloader::Outcome> Reloader::Reload(const ServerConfig& next) {
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
  RETURN_IF_ERROR(Apply(merged));
  running_ = std::move(merged);
  return outcome;
}

absl::Status Reloader::ReloadFiles() {
  MutexLock lock(&mutex_);
  return Apply(running_);
}

absl::Status Reloader::Apply(const ServerConfig& config) {
  std::vector<ReloadablePart::Commit> commits;
  for (const ReloadablePart& part : parts_) {
    ASSIGN_OR_RETURN(ReloadablePart::Commit commit, part.prepare(config));
    commits.push_back(std::move(commit));
  }
  for (const ReloadablePart::Commit& commit : commits) commit();
  return absl::OkStatus();
}

}  // namespace tensord::server
