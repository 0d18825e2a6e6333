#include "server/identity/authenticator.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "server/identity/method_roles.h"

namespace tensord::server {
namespace {

constexpr absl::string_view kBearer = "bearer ";

// Returns the token of "Bearer TOKEN", whose first word may be written in any case; nothing for any other
// authorization.
std::optional<absl::string_view> TokenOf(absl::string_view authorization) {
  if (!absl::StartsWithIgnoreCase(authorization, kBearer)) return std::nullopt;
  const absl::string_view token = absl::StripAsciiWhitespace(authorization.substr(kBearer.size()));
  if (token.empty()) return std::nullopt;
  return token;
}

void AddNames(const grpc::AuthContext& context, const char* property, absl::string_view kind,
              std::vector<std::string>* names) {
  for (const grpc::string_ref& value : context.FindPropertyValues(property)) {
    names->push_back(absl::StrCat(kind, absl::string_view(value.data(), value.size())));
  }
}

std::vector<std::string> CertificateNames(const grpc::CallbackServerContext& context) {
  std::vector<std::string> names;
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return names;
  AddNames(*auth, "peer_spiffe_id", "", &names);
  AddNames(*auth, "peer_dns", "dns:", &names);
  AddNames(*auth, "x509_common_name", "cn:", &names);
  return names;
}

Credentials CredentialsOf(const grpc::CallbackServerContext& context, const IdentityPolicy& policy) {
  Credentials credentials;
  if (policy.table != nullptr) {
    const auto range = context.client_metadata().equal_range("authorization");
    for (auto entry = range.first; entry != range.second; ++entry) {
      credentials.authorizations.emplace_back(entry->second.data(), entry->second.size());
    }
    if (!credentials.authorizations.empty()) return credentials;  // it decides
  }
  if (policy.takes_certificates) credentials.certificate_names = CertificateNames(context);
  if (policy.required && policy.trusts_unix_sockets) {
    credentials.over_unix_socket = absl::StartsWith(context.peer(), "unix:");
  }
  return credentials;
}

struct Identified {
  const Caller* caller = nullptr;
  std::optional<AuthRefusal> refusal;
};

Identified ByToken(const IdentityTable& table, const std::vector<absl::string_view>& authorizations) {
  const auto token = authorizations.size() == 1 ? TokenOf(authorizations[0]) : std::nullopt;
  if (!token.has_value()) return {.refusal = AuthRefusal::kMalformed};
  const Caller* const caller = table.FindToken(*token);
  if (caller == nullptr) return {.refusal = AuthRefusal::kUnknownToken};
  return {.caller = caller};
}

Identified ByCertificate(const IdentityTable* table, const std::vector<std::string>& names) {
  static const Caller* const kAnyOfTheCa = new Caller{.roles = {Role::kExecute, Role::kRead}};
  if (table == nullptr) return {.caller = kAnyOfTheCa};
  for (const std::string& name : names) {
    if (const Caller* const caller = table->FindCertificate(name)) return {.caller = caller};
  }
  return {.refusal = AuthRefusal::kUnknownCertificate};
}

Identified Identify(const IdentityPolicy& policy, const Credentials& credentials) {
  if (!credentials.authorizations.empty() && policy.table != nullptr) {
    return ByToken(*policy.table, credentials.authorizations);
  }
  const bool may_be_anybody = !policy.required || (credentials.over_unix_socket && policy.trusts_unix_sockets);
  if (!credentials.certificate_names.empty()) {
    const Identified identified = ByCertificate(policy.table.get(), credentials.certificate_names);
    if (identified.caller != nullptr || !may_be_anybody) return identified;
  }
  if (may_be_anybody) {
    static const Caller* const kAnybody = new Caller;
    return {.caller = kAnybody};
  }
  return {.refusal = AuthRefusal::kNoCredentials};
}

// Why not, where it may not.
std::optional<AuthRefusal> Decide(const IdentityPolicy& policy, const Credentials& credentials, RpcMethod method,
                                  Caller* caller) {
  const Identified identified = Identify(policy, credentials);
  if (identified.caller == nullptr) return identified.refusal;
  *caller = *identified.caller;
  if (!caller->roles.Has(RoleFor(method))) return AuthRefusal::kRole;
  return std::nullopt;
}

// Returns the caller's answer: enough to repair an honest mistake, and nothing about known names.
absl::Status RefusalOf(AuthRefusal refusal) {
  switch (refusal) {
    case AuthRefusal::kMalformed:
      return Refuse(Refusal::kUnauthenticated, "the call's metadata needs one \"authorization: Bearer TOKEN\"");
    case AuthRefusal::kUnknownToken:
      return Refuse(Refusal::kUnauthenticated, "the server does not know the call's token");
    case AuthRefusal::kUnknownCertificate:
      return Refuse(Refusal::kUnauthenticated, "the server knows no name of the client's certificate");
    case AuthRefusal::kNoCredentials:
    case AuthRefusal::kRole:
    case AuthRefusal::kOtherTenant:
    case AuthRefusal::kChangedTenant:
      break;
  }
  return Refuse(Refusal::kUnauthenticated,
                "the call shows neither a token, \"authorization: Bearer TOKEN\", nor a client's certificate");
}

absl::Status RefuseRole(absl::string_view use, Role role, const Caller& caller) {
  return Refuse(Refusal::kPermissionDenied, absl::StrCat(use, " needs the role ", Name(role), ", and tenant ",
                                                         caller.tenant, " has ", caller.roles.ToString()));
}

}  // namespace

void Authenticator::Replace(IdentityPolicy policy) {
  auto next = std::make_shared<const IdentityPolicy>(std::move(policy));
  MutexLock lock(&mutex_);
  std::swap(policy_, next);
  replaced_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const IdentityPolicy> Authenticator::policy() const {
  MutexLock lock(&mutex_);
  return policy_;
}

absl::Status Authenticator::Admit(const grpc::CallbackServerContext& context, RpcMethod method, Caller* caller,
                                  const CallIds& ids) const {
  const std::shared_ptr<const IdentityPolicy> policy = this->policy();
  if (!policy->required && policy->table == nullptr && !policy->takes_certificates) return absl::OkStatus();
  const auto refusal = Decide(*policy, CredentialsOf(context, *policy), method, caller);
  return refusal.has_value() ? Tell(*refusal, context.peer(), method, *caller, ids) : absl::OkStatus();
}

absl::Status Authenticator::Admit(const Credentials& credentials, const std::string& peer, RpcMethod method,
                                  Caller* caller, const CallIds& ids) const {
  const auto refusal = Decide(*policy(), credentials, method, caller);
  return refusal.has_value() ? Tell(*refusal, peer, method, *caller, ids) : absl::OkStatus();
}

absl::Status Authenticator::AdmitAgain(const grpc::CallbackServerContext& context, RpcMethod method,
                                       const Caller& caller, const CallIds& ids) const {
  Caller now;
  RETURN_IF_ERROR(Admit(context, method, &now, ids));
  return CheckTenant(caller, now, context.peer(), method, ids);
}

absl::Status Authenticator::AdmitAgain(const Credentials& credentials, const std::string& peer, RpcMethod method,
                                       const Caller& caller, const CallIds& ids) const {
  Caller now;
  RETURN_IF_ERROR(Admit(credentials, peer, method, &now, ids));
  return CheckTenant(caller, now, peer, method, ids);
}

absl::Status Authenticator::CheckTenant(const Caller& before, const Caller& now, const std::string& peer,
                                        RpcMethod method, const CallIds& ids) const {
  if (now.tenant == before.tenant) return absl::OkStatus();
  metrics_->CallRefused(AuthRefusal::kChangedTenant);
  audit_->Refused(AuthRefusal::kChangedTenant, method, peer, before.tenant, ids, "credential", now.tenant);
  return Refuse(Refusal::kUnauthenticated, "the call's credential has become another tenant's; call again");
}

void Authenticator::NamedAnothers(RpcMethod method, const std::string& peer, const std::string& tenant,
                                  absl::string_view what, const std::string& owner, const CallIds& ids) const {
  metrics_->CallRefused(AuthRefusal::kOtherTenant);
  audit_->Refused(AuthRefusal::kOtherTenant, method, peer, tenant, ids, what, owner);
}

absl::Status Authenticator::Tell(AuthRefusal refusal, const std::string& peer, RpcMethod method, const Caller& caller,
                                 const CallIds& ids) const {
  metrics_->CallRefused(refusal);
  const bool is_known = refusal == AuthRefusal::kRole;
  audit_->Refused(refusal, method, peer, is_known ? caller.tenant : "", ids);
  return is_known ? RefuseRole(Name(method), RoleFor(method), caller) : RefusalOf(refusal);
}

absl::Status Authenticator::CheckRole(Role role, absl::string_view use, RpcMethod method, const std::string& peer,
                                      const Caller& caller, const CallIds& ids) const {
  if (caller.roles.Has(role)) return absl::OkStatus();
  metrics_->CallRefused(AuthRefusal::kRole);
  audit_->Refused(AuthRefusal::kRole, method, peer, caller.tenant, ids);
  return RefuseRole(use, role, caller);
}

}  // namespace tensord::server
