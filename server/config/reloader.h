#ifndef TENSORD_SERVER_CONFIG_RELOADER_H_
#define TENSORD_SERVER_CONFIG_RELOADER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "server/config/server_config.pb.h"

namespace tensord::server {

// A part of a running server that takes new settings, or the new content of files named in settings.
struct ReloadablePart {
  // Puts the prepared settings in force. Cannot fail.
  using Commit = std::function<void()>;

  // The settings that it takes if server_config.proto lets them reload: "log.level", or "log" for all below.
  std::vector<std::string> settings;
  // Reads and checks its part of the configuration, and changes nothing.
  std::function<absl::StatusOr<Commit>(const ServerConfig& config)> prepare;
  // True if it is part of every reload, because its files may have changed. Other parts take part only if one of their
  // settings has changed, so that values an operator set by hand stay.
  bool reads_files = false;
};

// Changes the configuration of a running server: everything that can change together, or nothing. Thread-safe.
class Reloader {
 public:
  struct Outcome {
    std::vector<std::string> changed;       // settings that are in force now
    std::vector<std::string> need_restart;  // those that differ and stay as they are until the server starts again
  };

  Reloader(ServerConfig running, std::vector<ReloadablePart> parts);

  // Takes a configuration that ParseCommandLine has validated. If a part refuses, nothing has changed. `tell` hears of
  // each certain change just before it is made, while the log still has its old level; it may be null.
  absl::StatusOr<Outcome> Reload(const ServerConfig& next, const std::function<void(const Outcome&)>& tell = nullptr);
  // Takes the files again that the running configuration names.
  absl::Status ReloadFiles();

  ServerConfig running() const;

 private:
  // Prepares the parts that such a change concerns.
  absl::StatusOr<std::vector<ReloadablePart::Commit>> Prepare(const ServerConfig& config,
                                                              const std::vector<std::string>& changed) const;
  bool CanChange(const std::string& setting) const;

  const std::vector<ReloadablePart> parts_;
  mutable Mutex mutex_;  // one reload at a time
  ServerConfig running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_RELOADER_H_
