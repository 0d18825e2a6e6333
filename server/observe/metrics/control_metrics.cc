#include "server/observe/metrics/control_metrics.h"

#include <string>

#include "absl/time/clock.h"
#include "server/observe/metrics/metric_family.h"

namespace tensord::server {

absl::string_view Name(AuthRefusal refusal) {
  switch (refusal) {
    case AuthRefusal::kNoCredentials:
      return "no_credentials";
    case AuthRefusal::kMalformed:
      return "malformed";
    case AuthRefusal::kUnknownToken:
      return "unknown_token";
    case AuthRefusal::kUnknownCertificate:
      return "unknown_certificate";
    case AuthRefusal::kRole:
      return "role";
    case AuthRefusal::kOtherTenant:
      return "other_tenant";
    case AuthRefusal::kChangedTenant:
      break;
  }
  return "changed_tenant";
}

ControlMetrics::ControlMetrics(prometheus::Registry& registry) {
  auto& refusals = AddFamily<prometheus::Counter>(Metric::auth_refusals, registry);
  for (size_t i = 0; i < kNumAuthRefusals; ++i) {
    refusals_[i] = &refusals.Add({{"reason", std::string(Name(static_cast<AuthRefusal>(i)))}});
  }
  constexpr const char* kCauses[] = {"signal", "file"};
  constexpr const char* kResults[] = {"refused", "ok"};
  auto& reloads = AddFamily<prometheus::Counter>(Metric::config_reloads, registry);
  for (size_t cause = 0; cause < 2; ++cause) {
    for (size_t result = 0; result < 2; ++result) {
      reloads_[cause][result] = &reloads.Add({{"cause", kCauses[cause]}, {"result", kResults[result]}});
    }
  }
  last_reload_successful_ = &AddFamily<prometheus::Gauge>(Metric::config_last_reload_successful, registry).Add({});
  last_reload_success_ = &AddFamily<prometheus::Gauge>(Metric::config_last_reload_success_timestamp, registry).Add({});
  ShowReload(true);  // who starts with a configuration has read it
  auto& expiry = AddFamily<prometheus::Gauge>(Metric::tls_certificate_expiry, registry);
  server_expiry_ = &expiry.Add({{"certificate", "server"}});
  client_ca_expiry_ = &expiry.Add({{"certificate", "client_ca"}});
  SetCertificateExpiry(absl::InfiniteFuture(), absl::InfiniteFuture());
}

void ControlMetrics::Reloaded(ReloadCause cause, bool succeeded, bool in_step) {
  reloads_[static_cast<size_t>(cause)][succeeded ? 1 : 0]->Increment();
  ShowReload(in_step);
}

void ControlMetrics::ShowReload(bool succeeded) {
  last_reload_successful_->Set(succeeded ? 1 : 0);
  if (succeeded) last_reload_success_->Set(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
}

void ControlMetrics::SetCertificateExpiry(absl::Time server, absl::Time client_ca) {
  server_expiry_->Set(absl::ToDoubleSeconds(server - absl::UnixEpoch()));
  client_ca_expiry_->Set(absl::ToDoubleSeconds(client_ca - absl::UnixEpoch()));
}

}  // namespace tensord::server
