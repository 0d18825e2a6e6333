#ifndef TENSORD_TESTS_TESTLIB_TLS_CERTIFICATE_AUTHORITY_H_
#define TENSORD_TESTS_TESTLIB_TLS_CERTIFICATE_AUTHORITY_H_

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace tensord {

// A certificate and its key, in PEM.
struct IssuedCertificate {
  std::string certificate;
  std::string key;
};

struct CertificateSubject {
  std::string common_name = "tensord";
  std::string names = "IP:127.0.0.1,DNS:localhost";  // subject alternative names, as openssl.cnf writes them
  absl::Duration begin = -absl::Hours(1);            // since now
  absl::Duration end = absl::Hours(1);
};

// A certificate authority of a test's own, which issues what it is asked for. Ends the process where OpenSSL fails.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name = "test CA");
  ~CertificateAuthority();

  const std::string& certificate() const { return certificate_; }
  IssuedCertificate Issue(const CertificateSubject& subject = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string certificate_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_TLS_CERTIFICATE_AUTHORITY_H_
