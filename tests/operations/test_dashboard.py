"""The dashboard."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from metrics_page import ROOT, declared, promtool, read, uses

OF_PROMETHEUS = {"job", "instance"}
UNITS = {"none", "s", "bytes", "Bps", "reqps", "ops", "percentunit", "dateTimeFromNow"}


class DashboardTest(unittest.TestCase):
    def setUp(self):
        self.dashboard = json.loads(read("deploy/grafana/tensord.json"))
        self.panels = [panel for panel in self.dashboard["panels"] if panel["type"] != "row"]

    def test_is_what_its_description_gives(self):
        script = os.path.join(ROOT, "deploy", "grafana", "dashboard.py")
        made = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
        self.assertEqual(made, read("deploy/grafana/tensord.json"),
                         "run: python3 deploy/grafana/dashboard.py > deploy/grafana/tensord.json")

    def test_panels_have_titles_units_and_queries(self):
        self.assertGreater(len(self.panels), 30)
        titles = [panel["title"] for panel in self.panels]
        self.assertEqual(len(titles), len(set(titles)))
        self.assertEqual(len({panel["id"] for panel in self.dashboard["panels"]}), len(self.dashboard["panels"]))
        for panel in self.panels:
            with self.subTest(panel=panel["title"]):
                self.assertTrue(panel["title"])
                self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS)
                self.assertTrue(panel["targets"])
                for target in panel["targets"]:
                    self.assertTrue(target["legendFormat"])

    def test_metrics_and_their_labels_are_declared(self):
        metrics = declared()
        for panel in self.panels:
            for target in panel["targets"]:
                used = uses(target["expr"])
                self.assertTrue(used, panel["title"])
                for metric, labels in used:
                    with self.subTest(panel=panel["title"], metric=metric):
                        self.assertIn(metric, metrics)
                        self.assertLessEqual(labels - OF_PROMETHEUS, metrics[metric])
                        self.assertLessEqual(OF_PROMETHEUS, labels, "it shows other servers too")

    def test_legends_name_labels_that_are_kept(self):
        for panel in self.panels:
            for target in panel["targets"]:
                for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                    with self.subTest(panel=panel["title"]):
                        self.assertRegex(target["expr"], rf"by \([^)]*\b{label}\b")

    def test_sampled_times_are_scaled_to_all_runs(self):
        every = re.search(r"kEvery = (\d+);", read("engine/runtime/devices/segment_times.h")).group(1)
        scaled = [target["expr"] for panel in self.panels for target in panel["targets"] if "segment_seconds" in target["expr"]]
        self.assertTrue(scaled)
        for expression in scaled:
            self.assertTrue(expression.endswith(f" * {every}"), expression)

    def test_prometheus_reads_the_queries(self):
        tool = promtool()
        if tool is None:
            self.skipTest("there is no promtool; ./dev test unpacks it from Debian's package prometheus")
        queries = [target["expr"] for panel in self.panels for target in panel["targets"]]
        values = {"$job": "tensord", "$instance": ".*", "$__rate_interval": "5m"}
        rules = []
        for i, query in enumerate(queries):
            for variable, value in values.items():
                query = query.replace(variable, value)
            self.assertNotIn("$", query)
            rules.append({"record": f"panel:query:{i}", "expr": query})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "queries.yml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)
            result = subprocess.run([tool, "check", "rules", path], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_panels_do_not_overlap(self):
        taken = set()
        for panel in self.dashboard["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(taken & cells, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells


if __name__ == "__main__":
    unittest.main()
