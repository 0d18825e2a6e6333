#!/usr/bin/env python3
"""Prints rules.yaml, the rules and alerts of deploy/prometheus as an object of the Prometheus Operator:
python3 deploy/kubernetes/monitoring/rules.py > deploy/kubernetes/monitoring/rules.yaml"""
import os
import sys

import yaml

PROMETHEUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "prometheus")


def groups_of(name):
    with open(os.path.join(PROMETHEUS, name), encoding="utf-8") as file:
        return yaml.safe_load(file)["groups"]


def main():
    rule = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "tensord"},
            "spec": {"groups": groups_of("rules.yml") + groups_of("alerts.yml")}}
    print("# Made by rules.py of deploy/prometheus: do not change it here.")
    yaml.safe_dump(rule, sys.stdout, sort_keys=False, width=1000)


if __name__ == "__main__":
    main()
