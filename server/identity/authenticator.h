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
#include "server/observe/control_metrics.h"
#include "server/observe/rpc_method.h"

namespace tensord::server {

// What a call brings along to show who makes it.
struct Credentials {
  std::vector<absl::string_view> authorizations;  // values of the metadata "authorization"
  std::vector<std::string> certificate_names;     // of a certificate that TLS has verified, the strongest first
  bool over_unix_socket = false;
};

// Decides who makes a call and whether that caller may, at the beginning of each. Where there is a table of callers a
// token wins over a certificate, and one that nobody has is refused even where none is asked for; where there is none
// nobody has a token, and what calls bring as one is not looked at. Thread-safe, never blocks on anything slow; a
// policy is replaced while calls are decided by the old one. Metrics and audit must outlive it.
class Authenticator {
 public:
  Authenticator(ControlMetrics* metrics, Audit* audit) : metrics_(metrics), audit_(audit) {}

  void Replace(IdentityPolicy policy);
  // What calls are decided by now.
  std::shared_ptr<const IdentityPolicy> policy() const;
  // How often it was replaced: a call that was let in at another count is to be decided again.
  int64_t replaced() const { return replaced_.load(std::memory_order_acquire); }

  // OK, and who it is; UNAUTHENTICATED; PERMISSION_DENIED where the caller is known and may not call the method. A
  // refusal is counted and told to the audit.
  absl::Status Admit(const grpc::CallbackServerContext& context, RpcMethod method, Caller* caller,
                     const CallIds& ids = {}) const;
  // The same for credentials at hand; `peer` is for the audit.
  absl::Status Admit(const Credentials& credentials, const std::string& peer, RpcMethod method, Caller* caller,
                     const CallIds& ids = {}) const;
  // The same for a call that was let in as `caller` before the policy was replaced: UNAUTHENTICATED also where its
  // credential is another tenant's by now.
  absl::Status AdmitAgain(const grpc::CallbackServerContext& context, RpcMethod method, const Caller& caller,
                          const CallIds& ids = {}) const;
  absl::Status AdmitAgain(const Credentials& credentials, const std::string& peer, RpcMethod method,
                          const Caller& caller, const CallIds& ids = {}) const;
  // PERMISSION_DENIED where the caller, who was let in, lacks a role that this use of the method needs beside the
  // method's own. `use`: "Explain by first digits".
  absl::Status CheckRole(Role role, absl::string_view use, RpcMethod method, const std::string& peer,
                         const Caller& caller, const CallIds& ids) const;
  // The caller, who was let in, named what is another tenant's: counted and told to the audit. What the caller is told
  // is what is said of a name that nobody has. `what`: "session".
  void NamedAnothers(RpcMethod method, const std::string& peer, const std::string& tenant, absl::string_view what,
                     const std::string& owner, const CallIds& ids) const;

 private:
  // Counts a refusal, tells the audit, and says it to the caller.
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
