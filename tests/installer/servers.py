"""Servers of hooks, on loopback: a web host, with and without TLS, that serves git and packages too; and ssh."""

import base64
import datetime
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from gateway.testing import GatewayProcess
from tests.http_server import find_free_ports

ANNA = f"Basic {base64.b64encode(b'anna:s3cret').decode()}"
GIT_WORDS = ("/info/refs", "/git-upload-pack", "/HEAD", "/objects/")
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


class WebHost(SimpleHTTPRequestHandler):
    """A server of the files in a folder. Git's own server answers for bare repositories.

    `/endless` never ends, `/led/ADDRESS` redirects there, and paths below `/secret` need Anna's login.
    """

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if "/endless" in self.path:
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            while True:
                self.wfile.write(b"\0" * (1 << 20))
        elif self.path.startswith(("/away", "/led/")):
            self.send_response(302)
            there = self.path.removeprefix("/led/")
            self.send_header("Location", f"http://example.org{there}" if there.startswith("/") else there)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.startswith("/secret/") and self.headers.get("Authorization") != ANNA:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif any(word in self.path for word in GIT_WORDS):
            self._serve_git()
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self._serve_git()

    def _serve_git(self) -> None:
        parts = urlsplit(self.path)
        around = {
            "GIT_PROJECT_ROOT": str(self.directory),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH": os.environ["PATH"],
            "PATH_INFO": parts.path.removeprefix("/secret"),
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(["git", "http-backend"], env=around, input=asked, capture_output=True, check=True)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, ssl.SSLError):
            """Whoever asked has heard enough."""

    def log_message(self, *_args: object) -> None:
        """Log nothing."""


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_args: object) -> None:
        """Ignore the error of a connection that was given up."""


@contextmanager
def serve_folder(folder: Path, certificate: Path | None = None) -> Iterator[str]:
    """The address of a host with these files. `certificate`: with its key, where it speaks TLS."""
    with QuietServer(("127.0.0.1", 0), partial(WebHost, directory=str(folder))) as server:
        if certificate:
            around = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            around.load_cert_chain(certificate)
            server.socket = around.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def make_certificate(path: Path) -> Path:
    """Make a certificate of 127.0.0.1, with its key; a client that trusts this file trusts the host."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + made.public_bytes(Encoding.PEM))
    return path


@contextmanager
def serve_ssh(folder: Path, gateway: GatewayProcess) -> Iterator[str]:
    """The address of this user's account on an sshd of its own; the gateway's git knows how to get there."""
    assert SSHD
    folder.mkdir()
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (port,) = find_free_ports(1)
    settings = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "client.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
    }
    (folder / "config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    options = f"-F none -i {folder}/client -o IdentitiesOnly=yes -o UserKnownHostsFile={folder}/known"
    gateway.environ["GIT_SSH_COMMAND"] = f"ssh {options} -o StrictHostKeyChecking=accept-new"
    command = [SSHD, "-D", "-e", "-f", str(folder / "config")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr
            assert any("Server listening" in line for line in server.stderr)
            yield f"ssh://127.0.0.1:{port}"
        finally:
            server.terminate()
