"""The compose files: what they mount is there, and the parts find each other."""
import os
import re
import unittest

import yaml
from metrics_page import ROOT, read

FOLDER = os.path.join(ROOT, "deploy", "compose")


class ComposeTest(unittest.TestCase):
    def setUp(self):
        self.server = yaml.safe_load(read("deploy/compose/compose.yaml"))
        self.monitoring = yaml.safe_load(read("deploy/compose/monitoring.yaml"))
        self.mounts = {}
        for name, service in self.monitoring["services"].items():
            for volume in service["volumes"]:
                source, target = volume.split(":")[:2]
                self.mounts[name, target] = source

    def test_what_is_mounted_is_there(self):
        for (name, target), source in self.mounts.items():
            with self.subTest(service=name, target=target):
                if source.startswith("."):
                    self.assertTrue(os.path.exists(os.path.join(FOLDER, source)), source)
                else:
                    self.assertIn(source, self.monitoring["volumes"])

    def test_the_server_starts_on_any_number_of_processors_and_has_no_quota(self):
        server = self.server["services"]["tensord"]
        self.assertNotIn("cpuset", server, "it would not start where there are fewer")
        self.assertNotIn("cpus", server)
        self.assertEqual(list(server["deploy"]["resources"]["limits"]), ["memory"])

    def test_with_a_gpu_it_is_the_same_server_and_more(self):
        gpu = yaml.safe_load(read("deploy/compose/gpu.yaml"))
        server = gpu["services"]["tensord"]
        self.assertRegex(read("Dockerfile"), rf"(?m)^FROM runtime AS {server['build']['target']}$")
        self.assertNotEqual(server["image"], self.server["services"]["tensord"]["image"])
        default = re.findall(r'"([^"]*)"', re.findall(r"(?m)^CMD \[(.*)\]$", read("Dockerfile"))[0])
        self.assertEqual(server["command"][:len(default)], default)
        self.assertIn("--set=devices=cuda:0", server["command"])
        (device,) = server["deploy"]["resources"]["reservations"]["devices"]
        self.assertEqual((device["driver"], device["capabilities"]), ("nvidia", ["gpu"]))
        self.assertEqual(device["count"], sum("devices=cuda:" in flag for flag in server["command"]))
        for volume in server["volumes"]:
            name, target = volume.split(":")
            self.assertIn(name, gpu["volumes"])
            self.assertRegex(read("Dockerfile"), rf"install --directory --owner=65532 .* {target}\n", "it belongs to the server")

    def test_descriptors_processes_and_cores_are_bounded(self):
        server = self.server["services"]["tensord"]
        self.assertGreaterEqual(server["ulimits"]["nofile"], 2048)
        self.assertEqual(server["ulimits"]["core"], 0)
        self.assertGreater(server["pids_limit"], 0)

    def test_prometheus_scrapes_the_server_and_has_its_rules(self):
        config = yaml.safe_load(read("deploy/compose/prometheus.yml"))
        (job,) = config["scrape_configs"]
        self.assertEqual(job["job_name"], "tensord", "the alerts ask for it")
        (target,) = job["static_configs"][0]["targets"]
        service, port = target.split(":")
        self.assertIn(service, self.server["services"])
        self.assertIn(f"127.0.0.1:{port}:{port}", self.server["services"][service]["ports"])
        for path in config["rule_files"]:
            self.assertIn(("prometheus", path), self.mounts)

    def test_grafana_finds_prometheus_and_the_dashboard(self):
        (source,) = yaml.safe_load(read("deploy/grafana/provisioning/datasources/prometheus.yml"))["datasources"]
        host = source["url"].split("//")[1].split(":")[0]
        self.assertIn(host, self.monitoring["services"])
        (provider,) = yaml.safe_load(read("deploy/grafana/provisioning/dashboards/tensord.yml"))["providers"]
        self.assertIn(("grafana", provider["options"]["path"] + "/tensord.json"), self.mounts)

    def test_ports_are_open_to_this_machine_alone(self):
        for service in self.monitoring["services"].values():
            for port in service["ports"]:
                self.assertTrue(port.startswith("127.0.0.1:"), port)


if __name__ == "__main__":
    unittest.main()
