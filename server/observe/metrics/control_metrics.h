#ifndef TENSORD_SERVER_OBSERVE_METRICS_CONTROL_METRICS_H_
#define TENSORD_SERVER_OBSERVE_METRICS_CONTROL_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord::server {

// The reason of a refusal because of the caller. In rising order of the credentials that the caller had to show.
enum class AuthRefusal : uint8_t {
  kNoCredentials,       // neither a token nor a certificate
  kMalformed,           // an authorization that is no "Bearer TOKEN"
  kUnknownToken,        // nobody's token
  kUnknownCertificate,  // a certificate of the client CA that is nobody's
  kRole,                // a caller whose roles do not hold the method's
  kOtherTenant,         // one that named what is another tenant's
  kChangedTenant,       // one whose credential became another tenant's while its stream was open
};

inline constexpr size_t kNumAuthRefusals = 7;

// "no_credentials", "malformed", "unknown_token", "unknown_certificate", "role", "other_tenant".
absl::string_view Name(AuthRefusal refusal);

// The cause of reading the configuration again.
enum class ReloadCause : uint8_t { kSignal, kFileChanged };

// Counts of operators' controls: calls refused by identity, and files that the server reads again while it runs.
// Thread-safe. The registry must outlive it.
class ControlMetrics {
 public:
  explicit ControlMetrics(prometheus::Registry& registry);

  void CallRefused(AuthRefusal refusal) { refusals_[static_cast<size_t>(refusal)]->Increment(); }
  // `in_step`: the server runs with all that is on disk. It may have taken files, and not the configuration.
  void Reloaded(ReloadCause cause, bool succeeded, bool in_step);
  // Infinite until they are set.
  void SetCertificateExpiry(absl::Time server, absl::Time client_ca);

 private:
  void ShowReload(bool succeeded);

  std::array<prometheus::Counter*, kNumAuthRefusals> refusals_;
  std::array<std::array<prometheus::Counter*, 2>, 2> reloads_;  // by cause and result
  prometheus::Gauge* last_reload_successful_;
  prometheus::Gauge* last_reload_success_;
  prometheus::Gauge* server_expiry_;
  prometheus::Gauge* client_ca_expiry_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_CONTROL_METRICS_H_
