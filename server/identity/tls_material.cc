#include "server/identity/tls_material.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/identity/private_file.h"

namespace tensord::server {
namespace {

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct X509Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, BioFree>;
using Certificate = std::unique_ptr<X509, X509Free>;
using Key = std::unique_ptr<EVP_PKEY, KeyFree>;

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

Bio Reader(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

// No service can start with a key that asks for a password; without this OpenSSL would ask the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& path, const std::string& pem) {
  const Bio bio = Reader(pem);
  std::vector<Certificate> certificates;
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, &NoPassword, nullptr))
    certificates.emplace_back(next);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (certificates.empty()) return Wrong(path, "holds no certificate in PEM");
  if (!at_end) return Wrong(path, absl::StrCat("certificate ", certificates.size() + 1, " cannot be read"));
  return certificates;
}

absl::StatusOr<absl::Time> TimeOf(const std::string& path, const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return Wrong(path, "a certificate has no time");
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// Until when the certificate is valid; it must be valid now.
absl::StatusOr<absl::Time> ValidUntil(const std::string& path, const X509* certificate, absl::Time now) {
  ASSIGN_OR_RETURN(const absl::Time begin, TimeOf(path, X509_get0_notBefore(certificate)));
  ASSIGN_OR_RETURN(const absl::Time end, TimeOf(path, X509_get0_notAfter(certificate)));
  if (now > end)
    return Wrong(path, absl::StrCat("the certificate expired at ", absl::FormatTime(end, absl::UTCTimeZone())));
  if (now < begin) {
    return Wrong(path,
                 absl::StrCat("the certificate is not valid before ", absl::FormatTime(begin, absl::UTCTimeZone())));
  }
  return end;
}

absl::Status CheckKey(const ServerConfig::Tls& settings, const std::string& pem, X509* certificate) {
  const Bio bio = Reader(pem);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassword, nullptr));
  ERR_clear_error();
  if (key == nullptr) return Wrong(settings.key(), "holds no private key in PEM without a password");
  const bool fits = X509_check_private_key(certificate, key.get()) == 1;
  ERR_clear_error();
  if (!fits)
    return Wrong(settings.key(), absl::StrCat("is not the key of the certificate in ", settings.certificate()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsMaterial> LoadTlsMaterial(const ServerConfig::Tls& settings, absl::Time now,
                                            const TlsMaterial* running) {
  TlsMaterial material;
  ASSIGN_OR_RETURN(material.certificate, ReadPrivateFile(settings.certificate(), FileSecrecy::kPublic));
  ASSIGN_OR_RETURN(material.key, ReadPrivateFile(settings.key(), FileSecrecy::kSecret));
  if (!settings.client_ca().empty()) {
    ASSIGN_OR_RETURN(material.client_ca, ReadPrivateFile(settings.client_ca(), FileSecrecy::kPublic));
  }
  if (running != nullptr && material == *running) return *running;

  ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                   ReadCertificates(settings.certificate(), material.certificate));
  ASSIGN_OR_RETURN(material.certificate_expiry, ValidUntil(settings.certificate(), chain[0].get(), now));
  RETURN_IF_ERROR(CheckKey(settings, material.key, chain[0].get()));
  if (settings.client_ca().empty()) return material;

  ASSIGN_OR_RETURN(const std::vector<Certificate> roots, ReadCertificates(settings.client_ca(), material.client_ca));
  for (const Certificate& root : roots) {
    // While a CA is replaced the file holds the old one too, so one that has ended only lets nobody in.
    ASSIGN_OR_RETURN(const absl::Time expiry, TimeOf(settings.client_ca(), X509_get0_notAfter(root.get())));
    material.client_ca_expiry = std::min(material.client_ca_expiry, expiry);
  }
  return material;
}

void ShowExpiry(const TlsMaterial& material, ControlMetrics* metrics) {
  metrics->SetCertificateExpiry(material.certificate_expiry, material.client_ca_expiry);
}

}  // namespace tensord::server
