#ifndef TENSORD_SERVER_IDENTITY_AUTHENTICATOR_H_
#define TENSORD_SERVER_IDENTITY_AUTHENTICATOR_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/mutex.h"
#include "server/identity/audit.h"
#include "server/identity/caller.h"
#include "server/identity/identity_policy.h"
#include "server/observe/metrics/control_metrics.h"
#include "server/observe/records/rpc_method.h"

namespace tensord::server {

// Evidence in a call of who makes it.
struct Credentials {
  std::vector<absl::string_view> authorizations;  // values of the metadata "authorization"
  std::vector<std::string> certificate_names;     // of a certificate that TLS has verified, the strongest first
  bool over_unix_socket = false;
};

// Authentication and authorization of calls, at their beginning. With a table of callers, a token wins over a
// certificate, and an unknown token is refused even if the policy requires none. Without a table, tokens are ignored.
// Metrics and audit must outlive it. Thread-safe; never blocks on anything slow. Replacing the policy does not disturb
// calls under the old one.
class Authenticator {
 public:
  Authenticator(ControlMetrics* metrics, Audit* audit) : metrics_(metrics), audit_(audit) {}

  void Replace(IdentityPolicy policy);
  // Returns the policy in force.
  std::shared_ptr<const IdentityPolicy> policy() const;
  // Number of replacements. A call admitted at another count has to be admitted again.
  int64_t replaced() const { return replaced_.load(std::memory_order_acquire); }

  // Admits a call and sets `caller`. UNAUTHENTICATED; PERMISSION_DENIED for a known caller without the method's role.
  // Counts a refusal and tells the audit.
  absl::Status Admit(const grpc::CallbackServerContext& context, RpcMethod method, Caller* caller,
                     const CallIds& ids = {}) const;
  // Does the same for given credentials; `peer` is for the audit.
  absl::Status Admit(const Credentials& credentials, const std::string& peer, RpcMethod method, Caller* caller,
                     const CallIds& ids = {}) const;
  // Admits a call again that the old policy admitted as `caller`. UNAUTHENTICATED also if the new policy gives the
  // call's credential to another tenant.
  absl::Status AdmitAgain(const grpc::CallbackServerContext& context, RpcMethod method, const Caller& caller,
                          const CallIds& ids = {}) const;
  absl::Status AdmitAgain(const Credentials& credentials, const std::string& peer, RpcMethod method,
                          const Caller& caller, const CallIds& ids = {}) const;
  // Checks that an admitted caller has `role`, which this use of the method needs beside the method's own role;
  // PERMISSION_DENIED if not. `use`: "Explain by first digits".
  absl::Status CheckRole(Role role, absl::string_view use, RpcMethod method, const std::string& peer,
                         const Caller& caller, const CallIds& ids) const;
  // Records that an admitted caller named an object of another tenant: counts it and tells the audit. The caller's own
  // answer must be the one for an unknown name. `what`: "session".
  void NamedAnothers(RpcMethod method, const std::string& peer, const std::string& tenant, absl::string_view what,
                     const std::string& owner, const CallIds& ids) const;

 private:
  // Both count a refusal, tell the audit, and return the caller's answer.
  absl::Status CheckTenant(const Caller& before, const Caller& now, const std::string& peer, RpcMethod method,
                           const CallIds& ids) const;
  absl::Status Tell(AuthRefusal refusal, const std::string& peer, RpcMethod method, const Caller& caller,
                    const CallIds& ids) const;

  ControlMetrics* const metrics_;
  Audit* const audit_;
  std::atomic<int64_t> replaced_{0};
  mutable Mutex mutex_;  // held to copy a pointer
  std::shared_ptr<const IdentityPolicy> policy_ ABSL_GUARDED_BY(mutex_) = std::make_shared<IdentityPolicy>();
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_AUTHENTICATOR_H_
