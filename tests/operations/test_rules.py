"""Recording rules and alerts."""
import os
import re
import subprocess
import unittest

import yaml
from metrics_page import ROOT, declared, promtool, read, uses

FOLDER = os.path.join(ROOT, "deploy", "prometheus")
OF_PROMETHEUS = {"job", "instance"}


def rules_of(path):
    return [rule for group in yaml.safe_load(read(path))["groups"] for rule in group["rules"]]


def anchors_of(path):
    """The anchors that hosts of Markdown make of headings."""
    titles = re.findall(r"^#+ (.*)$", read(path), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def limit_settings():
    """The names, in quotes, of the settings that server_config.proto declares as limits."""
    text = read("server/config/server_config.proto")
    paths = dict(re.findall(r"^  optional ([A-Z]\w*) (\w+) = \d+;", text, re.MULTILINE))
    for message, body in re.findall(r"^  message (\w+) \{\n(.*?)^  \}", text, re.MULTILINE | re.DOTALL):
        for name, options in re.findall(r"^    optional \w+ (\w+) = \d+ \[([^\]]*)\];", body, re.MULTILINE):
            if "(limit) = true" in options:
                yield f'"{name}"' if message == "Limits" else f'"{paths[message]}.{name}"'


class RulesTest(unittest.TestCase):
    def setUp(self):
        self.recorded = {rule["record"]: rule for rule in rules_of("deploy/prometheus/rules.yml")}
        self.alerts = {rule["alert"]: rule for rule in rules_of("deploy/prometheus/alerts.yml")}

    def test_there_are_some(self):
        self.assertGreater(len(self.recorded), 5)
        self.assertGreater(len(self.alerts), 15)

    def test_metrics_and_their_labels_are_declared(self):
        metrics = declared()
        for name, rule in {**self.recorded, **self.alerts}.items():
            for metric, labels in uses(rule["expr"]):
                with self.subTest(rule=name, metric=metric):
                    self.assertIn(metric, metrics)
                    self.assertLessEqual(labels - OF_PROMETHEUS, metrics[metric])

    def test_recorded_names_that_alerts_use_are_recorded(self):
        for name, rule in self.alerts.items():
            for used in re.findall(r"\w+(?::\w+)+", rule["expr"]):
                with self.subTest(alert=name):
                    self.assertIn(used, self.recorded)

    def test_limits_that_alerts_name_exist(self):
        config = "".join(limit_settings()) + read("proto/codec/graph_limits.def")
        for name, rule in self.alerts.items():
            for limit in re.findall(r'limit="([^"]*)"', rule["expr"]):
                with self.subTest(alert=name):
                    self.assertRegex(config, rf'"{re.escape(limit)}"|\({re.escape(limit)},')

    def test_each_alert_has_a_section_of_the_runbook(self):
        anchors = anchors_of("docs/operate/runbook.md")
        for name, rule in self.alerts.items():
            with self.subTest(alert=name):
                path, anchor = rule["annotations"]["runbook"].split("#")
                self.assertEqual(path, "docs/operate/runbook.md")
                self.assertEqual(anchor, name.lower())
                self.assertIn(anchor, anchors)

    def test_each_section_of_the_runbook_about_an_alert_has_it(self):
        for title in re.findall(r"^### (Tensord\w+)$", read("docs/operate/runbook.md"), re.MULTILINE):
            self.assertIn(title, self.alerts)

    def test_alerts_have_a_severity_and_say_where(self):
        for name, rule in self.alerts.items():
            with self.subTest(alert=name):
                self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
                self.assertIn("{{ $labels.instance }}", rule["annotations"]["summary"])

    def test_each_alert_is_tested_to_come_and_to_stay_away(self):
        comes, stays_away = set(), set()
        for test in yaml.safe_load(read("deploy/prometheus/alerts_test.yml"))["tests"]:
            for case in test["alert_rule_test"]:
                (comes if case.get("exp_alerts") else stays_away).add(case["alertname"])
        self.assertEqual(comes, set(self.alerts))
        self.assertEqual(stays_away, set(self.alerts))


class PromtoolTest(unittest.TestCase):
    def setUp(self):
        self.tool = promtool()
        if self.tool is None:
            self.skipTest("there is no promtool; ./dev test unpacks it from Debian's package prometheus")

    def run_tool(self, *arguments):
        result = subprocess.run([self.tool, *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_rules_are_valid(self):
        self.run_tool("check", "rules", "--lint-fatal", "rules.yml", "alerts.yml")

    def test_configuration_is_valid(self):
        self.run_tool("check", "config", "prometheus.yml")

    def test_alerts_come_when_they_should(self):
        self.run_tool("test", "rules", "alerts_test.yml")


if __name__ == "__main__":
    unittest.main()
