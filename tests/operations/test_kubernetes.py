"""The manifests for Kubernetes: what belongs together, and a server that has its files as a kubelet hands them over."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import yaml
from metrics_page import ROOT, declared, read

sys.path.insert(0, os.path.join(ROOT, "tests", "python"))
from server_process import ServerProcess, binary_or_skip  # noqa: E402

FOLDER = os.path.join(ROOT, "deploy", "kubernetes")
SETTINGS = "deploy/kubernetes/base/tensord.textproto"
WAIT_SECONDS = 60


def objects(path):
    return {entry["kind"]: entry for entry in yaml.safe_load_all(read(path))}


def milliseconds(message, field):
    return int(re.search(rf"{message} {{[^}}]*{field}: (\d+)", re.sub(r"#.*", "", read(SETTINGS))).group(1))


class ManifestsTest(unittest.TestCase):
    def setUp(self):
        self.server = objects("deploy/kubernetes/base/server.yaml")
        self.network = objects("deploy/kubernetes/base/network.yaml")
        self.pod = self.server["StatefulSet"]["spec"]["template"]["spec"]
        (self.container,) = self.pod["containers"]
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}

    def test_it_may_end_before_it_is_killed(self):
        tracing = re.search(r"timeout_ms = 10 \[default = (\d+)", read("server/config/server_config.proto")).group(1)
        needed = milliseconds("drain", "grace_ms") + milliseconds("drain", "timeout_ms") + int(tracing)
        self.assertGreater(self.pod["terminationGracePeriodSeconds"] * 1000, needed + 1000)
        seen = self.container["readinessProbe"]["periodSeconds"] * self.container["readinessProbe"]["failureThreshold"]
        self.assertGreater(milliseconds("drain", "grace_ms"), seen * 1000, "the cluster looks that often")

    def test_probes_ask_what_the_server_answers(self):
        paths = {name: self.container[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
        self.assertEqual(paths, {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"})
        for name in paths:
            self.assertEqual(self.container[name]["httpGet"]["port"], "monitoring")

    def test_ports_are_those_of_the_settings(self):
        self.assertIn(f'listen: "0.0.0.0:{self.ports["grpc"]}"', read(SETTINGS))
        self.assertIn(f'metrics: "0.0.0.0:{self.ports["monitoring"]}"', read(SETTINGS))
        for policy in self.network["NetworkPolicy"]["spec"]["ingress"]:
            self.assertLessEqual({port["port"] for port in policy["ports"]}, set(self.ports))
        for port in self.network["Service"]["spec"]["ports"]:
            self.assertIn(port["targetPort"], self.ports)

    def test_files_of_the_settings_are_mounted(self):
        mounts = [mount["mountPath"] for mount in self.container["volumeMounts"]]
        for path in re.findall(r'"(?:unix:)?(/[^"]*)"', read(SETTINGS)) + [self.container["args"][0].split("=")[1]]:
            self.assertTrue(any(path.startswith(mount + "/") for mount in mounts), path)
        volumes = {volume["name"] for volume in self.pod["volumes"]}
        claims = {claim["metadata"]["name"] for claim in self.server["StatefulSet"]["spec"]["volumeClaimTemplates"]}
        self.assertEqual({mount["name"] for mount in self.container["volumeMounts"]}, volumes | claims)

    def test_selectors_find_the_pods(self):
        labels = self.server["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
        for selector in (self.server["StatefulSet"]["spec"]["selector"]["matchLabels"],
                         self.server["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
                         self.network["Service"]["spec"]["selector"],
                         self.network["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
            self.assertEqual(selector, labels)

    def test_processors_are_whole_and_requested_as_limited(self):
        resources = self.container["resources"]
        self.assertEqual(resources["requests"], resources["limits"])
        self.assertRegex(resources["limits"]["cpu"], r"^\d+$")

    def test_rights(self):
        self.assertTrue(self.pod["securityContext"]["runAsNonRoot"])
        user = self.pod["securityContext"]["runAsUser"]
        self.assertIn(f"USER {user}:{user}", read("Dockerfile"))
        self.assertEqual(self.pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertFalse(self.pod["automountServiceAccountToken"])
        own = self.container["securityContext"]
        self.assertEqual(own["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(own["readOnlyRootFilesystem"])
        self.assertFalse(own["allowPrivilegeEscalation"])
        for volume in self.pod["volumes"]:
            if "secret" in volume:
                self.assertEqual(volume["secret"]["defaultMode"], 0o440)

    def test_rules_are_those_of_prometheus(self):
        script = os.path.join(FOLDER, "monitoring", "rules.py")
        made = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
        self.assertEqual(made, read("deploy/kubernetes/monitoring/rules.yaml"),
                         "run: python3 deploy/kubernetes/monitoring/rules.py > deploy/kubernetes/monitoring/rules.yaml")

    def test_the_autoscaler_asks_for_metrics_that_there_are(self):
        adapter = read("deploy/kubernetes/README.md")
        for series in re.findall(r"seriesQuery: (\w+)", adapter):
            self.assertIn(series, declared())
        for metric in objects("deploy/kubernetes/autoscaling/autoscaler.yaml")["HorizontalPodAutoscaler"]["spec"]["metrics"]:
            (asked,) = [value for key, value in metric.items() if key != "type"]
            self.assertRegex(adapter, rf"(seriesQuery|as): {asked['metric']['name']}\b")

    def test_kustomize_makes_them(self):
        if shutil.which("kubectl") is None:
            self.skipTest("there is no kubectl")
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "kubernetes")
            shutil.copytree(FOLDER, copy)
            overlay = os.path.join(copy, "own")
            os.mkdir(overlay)
            with open(os.path.join(overlay, "kustomization.yaml"), "w", encoding="utf-8") as file:
                yaml.safe_dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "namespace": "here",
                                "resources": ["../cuda"], "components": ["../monitoring", "../autoscaling"]}, file)
            made = subprocess.run(["kubectl", "kustomize", overlay], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        kinds = {entry["kind"]: entry for entry in yaml.safe_load_all(made.stdout)}
        self.assertEqual({"ConfigMap", "StatefulSet", "Service", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "PrometheusRule",
                          "HorizontalPodAutoscaler"}, set(kinds))
        self.assertEqual(kinds["ConfigMap"]["data"]["tensord.textproto"], read(SETTINGS))
        callers = kinds["NetworkPolicy"]["spec"]["ingress"][0]["from"]
        self.assertIn({"podSelector": {"matchLabels": {"tensord-clients": "true"}}}, callers, "clients need no label of the server's")
        (container,) = kinds["StatefulSet"]["spec"]["template"]["spec"]["containers"]
        version = re.search(r"project\(tensord VERSION ([\d.]+)", read("CMakeLists.txt")).group(1)
        self.assertEqual(container["image"], f"tensord:{version}-cuda")
        self.assertRegex(read("Dockerfile"), r"(?m)^FROM runtime AS cuda$")
        self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], 1)
        self.assertEqual(container["args"], [*self.container["args"], "--set=devices=cuda:0", "--set=devices=cpu", "--set=cuda.warm=true"])
        self.assertEqual(kinds["StatefulSet"]["spec"]["template"]["spec"]["runtimeClassName"], "nvidia")

    def test_the_servers_of_gpus_start_with_settings_that_there_are(self):
        (patch,) = yaml.safe_load(read("deploy/kubernetes/cuda/kustomization.yaml"))["patches"]
        flags = [change["value"] for change in yaml.safe_load(patch["patch"]) if change["path"].endswith("/args/-")]
        self.assertEqual(flags[0], "--set=devices=cuda:0", "the first is the default")
        # Without the GPU: that is all that is missing.
        server = subprocess.run([binary_or_skip(), "--check-config", *flags],
                                capture_output=True, text=True, check=False)
        self.assertNotIn("setting", server.stderr)
        if server.returncode != 0:
            self.assertIn("device cuda:0 is not there", server.stderr)


class MountedFilesTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="pod-")
        self.addCleanup(holder.cleanup)
        self.root = holder.name
        self.swaps = 0
        for name in ("run", "cache", "files"):
            os.mkdir(self.path(name))
        os.chmod(self.path("cache"), 0o2775)
        os.chmod(self.path("run"), 0o2777)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", self.path("files/tls.key"), "-out", self.path("files/tls.crt")],
                       check=True, capture_output=True)
        with open(self.path("files/tls.crt"), "rb") as certificate, open(self.path("files/tls.key"), "rb") as key:
            pem = certificate.read()
            self.mount("etc/tls", {"tls.crt": pem, "ca.crt": pem, "tls.key": key.read()}, 0o440)
        self.mount("etc/callers", {"callers": b"team-a execute,read " + b"0" * 64 + b"\n"}, 0o440)
        self.settings = read(SETTINGS).replace("/etc/tensord/", self.path("etc/")).replace("/run/tensord/", self.path("run/"))
        self.settings = self.settings.replace('"/cache/', f'"{self.path("cache/")}').replace("0.0.0.0:7070", "127.0.0.1:0")
        self.settings = self.settings.replace("0.0.0.0:9464", "127.0.0.1:0") + "reload { check_files_ms: 20 }\n"
        self.mount("etc/config", {"tensord.textproto": self.settings.encode()}, 0o644)

    def path(self, name):
        return os.path.join(self.root, name)

    def mount(self, volume, files, mode):
        """Mount as the kubelet does, again too: files are links through ..data, and that changes as a whole."""
        self.swaps += 1
        folder, version = self.path(volume), f"..{self.swaps}"
        os.makedirs(os.path.join(folder, version))
        for name, content in files.items():
            path = os.path.join(folder, version, name)
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, mode)
            if not os.path.islink(os.path.join(folder, name)):
                os.symlink(f"..data/{name}", os.path.join(folder, name))
        os.symlink(version, os.path.join(folder, "..data_tmp"))
        os.rename(os.path.join(folder, "..data_tmp"), os.path.join(folder, "..data"))

    def start(self, *flags):
        server = ServerProcess(f"--config={self.path('etc/config/tensord.textproto')}", "--listen=127.0.0.1:0", *flags)
        self.addCleanup(server.stop)
        return server

    def get(self, server, path):
        try:
            with urllib.request.urlopen(f"http://{server.metrics_address()}{path}", timeout=WAIT_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def wait_for_line(self, server, line):
        deadline = time.monotonic() + WAIT_SECONDS
        while f"\n{line}\n" not in self.get(server, "/metrics")[1]:
            self.assertLess(time.monotonic(), deadline, f"{line} does not come: {server.log()}")
            time.sleep(0.01)

    def test_changes_of_the_config_map_and_of_secrets_are_taken(self):
        server = self.start()
        self.assertEqual(self.get(server, "/readyz")[0], 200)
        self.mount("etc/config", {"tensord.textproto": self.settings.replace("limits {", "limits { default_deadline_ms: 1234").encode()}, 0o644)
        self.wait_for_line(server, 'tensord_limit{limit="default_deadline_ms"} 1234')
        self.wait_for_line(server, 'tensord_config_reloads_total{cause="file",result="ok"} 1')
        self.mount("etc/callers", {"callers": b"team-b execute,read " + b"1" * 64 + b"\n"}, 0o440)
        self.wait_for_line(server, 'tensord_config_reloads_total{cause="file",result="ok"} 2')

    def test_a_cache_that_was_opened_to_the_group_is_used_again(self):
        graph = os.path.join(ROOT, "clients", "examples", "graphs", "tanh_affine.json")
        server = self.start(f"--set=warm_up.graphs={graph}")
        self.wait_for_line(server, 'tensord_program_cache_entries{tier="disk"} 1')
        server.stop()
        for folder, _, files in os.walk(self.path("cache")):
            os.chmod(folder, 0o2770)
            for name in files:
                os.chmod(os.path.join(folder, name), 0o660)
        again = self.start()
        self.assertEqual(self.get(again, "/readyz")[0], 200)
        self.wait_for_line(again, 'tensord_program_cache_entries{tier="memory"} 1')
        self.assertIn("program folder closed", again.log())
        self.assertEqual(os.stat(self.path("cache/programs")).st_mode & 0o7777, 0o700)


if __name__ == "__main__":
    unittest.main()
