"""TLS, certificates and tokens: what the client sends, and what a real server makes of it."""

import contextlib
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import grpc
import numpy as np

import checkout
from server_process import ServerProcess, binary_or_skip
import tensord as td

sys.path.insert(0, str(checkout.REPOSITORY / "tests" / "pages"))
import page_blocks  # noqa: E402
import project_files  # noqa: E402

PYTHON_PAGE = "clients/python/README.md"
NO_ACCESS = {name: "" for name in os.environ if name.startswith("TENSORD_") and name != "TENSORD_BINARY"}


def openssl(*words, **options):
    subprocess.run(["openssl", *words], check=True, capture_output=True, **options)


class Certificates:
    """A certificate authority in a folder, and what it issued: NAME.pem and NAME.key."""

    def __init__(self, folder, name="ca"):
        self.folder = pathlib.Path(folder)
        self.name = name
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.pem"))  # fmt: skip

    def path(self, name):
        return str(self.folder / name)

    def issue(self, name, names):
        request, extensions = self.path(f"{name}.csr"), self.path(f"{name}.ext")
        pathlib.Path(extensions).write_text(f"subjectAltName={names}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", self.path(f"{name}.key"), "-out", request)  # fmt: skip
        openssl("x509", "-req", "-in", request, "-CA", self.path(f"{self.name}.pem"), "-CAkey",
                self.path(f"{self.name}.key"), "-CAcreateserial", "-days", "1", "-extfile", extensions,
                "-out", self.path(f"{name}.pem"))  # fmt: skip
        os.chmod(self.path(f"{name}.key"), 0o600)
        return {"certificate_file": self.path(f"{name}.pem"), "key_file": self.path(f"{name}.key")}


class AccessTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        environment = unittest.mock.patch.dict(os.environ, NO_ACCESS)
        environment.start()
        self.addCleanup(environment.stop)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)


class Values(AccessTest):
    def test_tokens(self):
        for access in (td.Access(token="t-1"), td.Access(token_file=self.write("token", "t-1\n"))):
            for target in ("unix:/s", "localhost:1", "127.0.0.1:1", "[::1]:1"):
                self.assertEqual(access.metadata(target, False), (("authorization", "Bearer t-1"),))
            self.assertEqual(access.metadata("example.org:1", True), (("authorization", "Bearer t-1"),))
            with self.assertRaisesRegex(ValueError, "plain text"):
                access.metadata("example.org:1", False)
            self.assertNotIn("t-1", repr(access))
        self.assertEqual(td.Access().metadata("example.org:1", False), ())
        self.assertIsNone(td.Access().credentials())

    def test_what_does_not_go_together(self):
        for wrong in ({"certificate_file": "c"}, {"key_file": "k"}, {"token": "t", "token_file": "f"}):
            with self.assertRaises(ValueError):
                td.Access(**wrong)
        with self.assertRaises(OSError):
            td.Access(ca_file=str(self.folder / "absent"))
        with self.assertRaises(ValueError):
            td.Access(token_file=self.write("token", "\n"))

    def test_the_environment(self):
        with unittest.mock.patch.dict(os.environ, {"TENSORD_TOKEN_FILE": self.write("token", "t-2"), "TENSORD_TLS": "1"}):
            access = td.Access.from_environment()
        self.assertEqual(access.metadata("example.org:1", True), (("authorization", "Bearer t-2"),))
        self.assertIsInstance(access.credentials(), grpc.ChannelCredentials)


class RealServer(AccessTest):
    """Over TLS on a TCP port, with callers known by a token and by a certificate."""

    def setUp(self):
        binary_or_skip()
        super().setUp()
        self.authority = Certificates(self.folder)
        self.authority.issue("server", "IP:127.0.0.1")
        token_hash = hashlib.sha256(b"secret").hexdigest()
        reader_hash = hashlib.sha256(b"reader").hexdigest()
        callers = f"team-t execute,read {token_hash}\nteam-r read {reader_hash}\nteam-c execute,read spiffe://example.org/c\n"
        self.server = ServerProcess(
            "--listen=127.0.0.1:0",
            f"--set=tls.certificate={self.authority.path('server.pem')}",
            f"--set=tls.key={self.authority.path('server.key')}",
            f"--set=tls.client_ca={self.authority.path('ca.pem')}",
            f"--set=identity.file={self.write('callers', callers)}",
        )
        self.addCleanup(self.server.stop)
        self.target = self.server.tcp_target()

    def add(self, **access):
        access.setdefault("ca_file", self.authority.path("ca.pem"))
        with td.Client(self.target, timeout=60, access=td.Access(**access)) as client:
            return td.evaluate(lambda x: x + 1, np.arange(3.0), client=client)

    def test_callers(self):
        np.testing.assert_array_equal(self.add(token="secret"), [1, 2, 3])
        certificate = self.authority.issue("client", "URI:spiffe://example.org/c")
        np.testing.assert_array_equal(self.add(**certificate), [1, 2, 3])
        with self.assertRaises(td.Unauthenticated) as refused:
            self.add(token="wrong")
        self.assertEqual(refused.exception.reason, "UNAUTHENTICATED")
        with self.assertRaises(td.Unauthenticated):
            self.add()
        with self.assertRaises(td.PermissionDenied) as refused:
            self.add(token="reader")
        self.assertEqual(refused.exception.reason, "PERMISSION_DENIED")

    def test_example_of_the_page(self):
        page, section = PYTHON_PAGE, "install"
        blocks = page_blocks.blocks_of(page, project_files.read_lines(page), "python")
        (block,) = (block for block in blocks if block.name.endswith("/" + section))
        self.write("token", "secret")
        names = {"td": td}
        with contextlib.chdir(self.folder):
            exec(block.text.replace("compute.example.org:7070", self.target), names)
        with names["client"] as client:
            np.testing.assert_array_equal(td.evaluate(lambda x: x + 1, np.arange(3.0), client=client), [1, 2, 3])

    def test_whom_the_client_does_not_trust(self):
        stranger = Certificates(self.folder, "stranger")
        with self.assertRaises(td.Unavailable):
            self.add(token="secret", ca_file=stranger.path("stranger.pem"))
        with self.assertRaises(td.Unavailable), td.Client(self.target, timeout=60) as plain:
            plain.server_info()

    def test_the_environment(self):
        variables = {"TENSORD_CA_FILE": self.authority.path("ca.pem"), "TENSORD_TOKEN": "secret"}
        with unittest.mock.patch.dict(os.environ, variables), td.Client(self.target, timeout=60) as client:
            self.assertTrue(client.server_info().version)


if __name__ == "__main__":
    unittest.main()
