#include "tests/testlib/tls/certificate_authority.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "absl/time/clock.h"

namespace tensord {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "OpenSSL failed to %s\n", what);
  std::abort();
}

template <typename Write>
std::string ToPem(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  Require(bio != nullptr && write(bio) == 1, "write PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

std::string ToPem(X509* certificate) {
  return ToPem([=](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}
std::string ToPem(EVP_PKEY* key) {
  return ToPem([=](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  Require(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, "add an extension");
  X509_EXTENSION_free(extension);
}

void SetTime(ASN1_TIME* time, absl::Duration since_now) {
  Require(ASN1_TIME_set(time, absl::ToTimeT(absl::Now() + since_now)) != nullptr, "set a time");
}

// Without extensions and signature. The issuer's name is set by the caller.
X509* Unsigned(const CertificateSubject& subject, EVP_PKEY* key) {
  static std::atomic<int> serial{0};
  X509* const certificate = X509_new();
  Require(certificate != nullptr && X509_set_version(certificate, 2) == 1, "make a certificate");
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  SetTime(X509_getm_notBefore(certificate), subject.begin);
  SetTime(X509_getm_notAfter(certificate), subject.end);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(subject.common_name.c_str()), -1, -1, 0);
  return certificate;
}

EVP_PKEY* NewKey() {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  Require(key != nullptr, "make a key");
  return key;
}

}  // namespace

struct CertificateAuthority::State {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
};

CertificateAuthority::CertificateAuthority(const std::string& name) : state_(std::make_unique<State>()) {
  state_->key = NewKey();
  state_->certificate = Unsigned({.common_name = name}, state_->key);
  X509_set_issuer_name(state_->certificate, X509_get_subject_name(state_->certificate));
  AddExtension(state_->certificate, state_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(state_->certificate, state_->certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  Require(X509_sign(state_->certificate, state_->key, EVP_sha256()) > 0, "sign a certificate");
  certificate_ = ToPem(state_->certificate);
}

CertificateAuthority::~CertificateAuthority() {
  X509_free(state_->certificate);
  EVP_PKEY_free(state_->key);
}

IssuedCertificate CertificateAuthority::Issue(const CertificateSubject& subject) const {
  EVP_PKEY* const key = NewKey();
  X509* const certificate = Unsigned(subject, key);
  X509_set_issuer_name(certificate, X509_get_subject_name(state_->certificate));
  AddExtension(certificate, state_->certificate, NID_basic_constraints, "critical,CA:FALSE");
  if (!subject.names.empty()) AddExtension(certificate, state_->certificate, NID_subject_alt_name, subject.names);
  Require(X509_sign(certificate, state_->key, EVP_sha256()) > 0, "sign a certificate");
  IssuedCertificate issued{ToPem(certificate), ToPem(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return issued;
}

}  // namespace tensord
