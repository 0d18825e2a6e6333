#!/usr/bin/env python3
"""Prints the dashboard: python3 deploy/grafana/dashboard.py > deploy/grafana/tensord.json

A row is a title and its panels; a panel is a title, a unit of Grafana, and its queries, each an expression and the legend
of its series. Expressions select the servers with $job and $instance by themselves: SERVERS stands for that."""
import json

SERVERS = 'job="$job", instance=~"$instance"'
NOT_FAILED = 'code=~"OK|CANCELLED"'
WIDTH, HEIGHT = 24, 7


def metric(name, *labels):
    return f"{name}{{{', '.join((SERVERS,) + labels)}}}"


def rate(name, *labels):
    return f"rate({metric(name, *labels)}[$__rate_interval])"


def total(by, expression):
    return f"sum by ({by}) ({expression})"


def quantile(q, name, by, *labels):
    return f"histogram_quantile({q}, {total(by + ', le', rate(name + '_bucket', *labels))})"


def limit(name):
    return "min(" + metric("tensord_limit", f'limit="{name}"') + " > 0)"


# The expression of the rule instance:tensord_unaccounted_memory:bytes, which not everybody has.
UNACCOUNTED = " - ".join((total("instance", metric("process_resident_memory_bytes")),
                          "(" + total("instance", metric("tensord_memory_bytes", 'device=~"cpu:.*"'))
                          + " or 0 * " + total("instance", metric("process_resident_memory_bytes")) + ")",
                          total("instance", metric("tensord_program_cache_bytes", 'tier="memory"')),
                          total("instance", metric("tensord_fft_table_bytes")),
                          total("instance", metric("tensord_shared_memory_bytes")),
                          "5 * " + total("instance", metric("tensord_rpc_in_flight_bytes"))))

ROWS = (
    ("Overview", (
        ("Servers that are ready", "none", (("sum(" + metric("tensord_ready") + ")", "ready"),), "stat"),
        ("Calls", "reqps", ((f"sum({rate('tensord_rpc_handled_total')})", "calls"),), "stat"),
        ("Calls that fail", "percentunit", ((
            f"1 - sum({rate('tensord_rpc_handled_total', NOT_FAILED)}) / sum({rate('tensord_rpc_handled_total')})",
            "failed"),), "stat"),
        ("Execute, 99 of 100", "s", ((quantile(0.99, "tensord_rpc_duration_seconds", "method", 'method="Execute"'), "{{method}}"),), "stat"),
        ("Up since", "dateTimeFromNow", (("min(" + metric("process_start_time_seconds") + ") * 1000", "start"),), "stat"),
        ("Versions", "none", ((total("version, git", metric("tensord_build_info")), "{{version}} {{git}}"),), "stat"),
    )),
    ("Calls", (
        ("Calls by method", "reqps", ((total("method", rate("tensord_rpc_handled_total")) + " > 0", "{{method}}"),)),
        ("Calls by code", "reqps", ((total("code", rate("tensord_rpc_handled_total")), "{{code}}"),)),
        ("Calls in progress", "none", ((total("method", metric("tensord_rpc_in_flight")) + " > 0", "{{method}}"),)),
        ("Bytes received and sent", "Bps", (
            (f"sum({rate('tensord_rpc_received_bytes_total')})", "received"),
            (f"sum({rate('tensord_rpc_sent_bytes_total')})", "sent"))),
        ("Sizes of requests: 99 of 100, by method", "bytes", ((quantile(0.99, "tensord_rpc_request_size_bytes", "method"), "{{method}}"),)),
        ("Requests by tenant", "reqps", ((total("tenant", rate("tensord_tenant_requests_total")), "{{tenant}}"),)),
    )),
    ("Latency", (
        ("Half of the calls, by method", "s", ((quantile(0.5, "tensord_rpc_duration_seconds", "method"), "{{method}}"),)),
        ("99 of 100 calls, by method", "s", ((quantile(0.99, "tensord_rpc_duration_seconds", "method"), "{{method}}"),)),
        ("Execute: half, by stage", "s", ((quantile(0.5, "tensord_execute_stage_seconds", "stage"), "{{stage}}"),)),
        ("Execute: 99 of 100, by stage", "s", ((quantile(0.99, "tensord_execute_stage_seconds", "stage"), "{{stage}}"),)),
        ("Execute, spread", "s", ((total("le", rate("tensord_rpc_duration_seconds_bucket", 'method="Execute"')), "{{le}}"),), "heatmap"),
        ("Where kernels spend their time, by operation", "s", ((total("op", rate("tensord_segment_seconds_sum")) + " * 17", "{{op}}"),)),
    )),
    ("Errors and refusals", (
        ("Refused for want of room, by reason", "reqps", ((total("reason", rate("tensord_admission_rejected_total")), "{{reason}}"),)),
        ("Failed calls, by code", "reqps", ((total("code", rate("tensord_rpc_handled_total", 'code!="OK"')), "{{code}}"),)),
        ("Runs by outcome", "reqps", ((total("outcome", rate("tensord_execute_total")), "{{outcome}}"),)),
        ("Callers refused, by reason", "reqps", ((total("reason", rate("tensord_auth_refusals_total")), "{{reason}}"),)),
        ("Refused for want of memory, by pool", "ops", ((total("device, pool", rate("tensord_out_of_memory_total")), "{{pool}} of {{device}}"),)),
        ("Faults of devices, by kind", "ops", ((total("device, kind", rate("tensord_device_errors_total")), "{{device}}: {{kind}}"),)),
        ("Calls that clients left", "reqps", ((total("method", rate("tensord_rpc_cancelled_total")) + " > 0", "{{method}}"),)),
    )),
    ("Queue and devices", (
        ("Requests that wait, by class", "none", (
            (total("class", metric("tensord_queue_depth")), "{{class}}"),
            (limit("cpu.queue_length"), "limit"))),
        ("Bytes of the requests that wait", "bytes", ((total("device", metric("tensord_queue_bytes")), "{{device}}"),)),
        ("Oldest request that waits", "s", (("max by (device) (" + metric("tensord_queue_oldest_age_seconds") + ")", "{{device}}"),)),
        ("Executors at work", "none", ((total("device", rate("tensord_executor_busy_seconds_total")), "{{device}}"),)),
        ("Each executor at work", "percentunit", ((total("device, worker", rate("tensord_executor_busy_seconds_total")), "{{device}}, {{worker}}"),)),
        ("Devices that work", "none", (("min by (device) (" + metric("tensord_device_up") + ")", "{{device}}"),)),
        ("Segments run", "ops", ((total("device", rate("tensord_segment_launches_total")), "{{device}}"),)),
        ("Device time by tenant", "none", ((total("tenant", rate("tensord_tenant_device_seconds_total")), "{{tenant}}"),)),
        ("Processor time of the process", "none", ((total("instance", rate("process_cpu_seconds_total")), "{{instance}}"),)),
    )),
    ("GPUs", (
        ("Memory of GPUs", "bytes", (
            (total("device, state", metric("tensord_memory_bytes", 'device=~"cuda:.*"')), "{{device}}: {{state}}"),
            (total("device", metric("tensord_memory_peak_bytes", 'device=~"cuda:.*"')), "{{device}}: peak"),
            (total("device", metric("tensord_device_memory_bytes", 'device=~"cuda:.*"')), "{{device}}: all"))),
        ("Bytes copied to GPUs and from them", "Bps", ((total("device, direction", rate("tensord_cuda_copied_bytes_total")), "{{device}}: {{direction}}"),)),
        ("GPUs that were lost and made anew", "none", ((total("device, event", metric("tensord_cuda_contexts_total")), "{{device}}: {{event}}"),)),
        ("Kernels by where their machine code was", "ops", ((total("result", rate("tensord_cuda_kernels_total")), "{{result}}"),)),
        ("Threads that compile kernels", "none", ((total("instance", rate("tensord_cuda_kernel_compile_seconds_total")), "{{instance}}"),)),
        ("Machine code of kernels, by tier", "bytes", ((total("tier", metric("tensord_cuda_kernel_bytes")), "{{tier}}"),)),
    )),
    ("Compilation and programs", (
        ("Programs asked for, by result", "reqps", ((total("result", rate("tensord_compile_requests_total")), "{{result}}"),)),
        ("Time of compilations", "s", (
            (quantile(0.5, "tensord_compile_seconds", "phase", 'phase=~"total|sizes"'), "half, {{phase}}"),
            (quantile(0.99, "tensord_compile_seconds", "phase", 'phase=~"total|sizes"'), "99 of 100, {{phase}}"))),
        ("Where compilations spend their time, by phase", "s", ((total("phase", rate("tensord_compile_seconds_sum", 'phase!~"total|sizes"')), "{{phase}}"),)),
        ("Compilations under way and waiting", "none", (
            (f"sum({metric('tensord_compile_in_flight')})", "under way"),
            (f"sum({metric('tensord_compile_queue_depth')})", "waiting"))),
        ("Oldest compilation that waits", "s", (("max by (instance) (" + metric("tensord_compile_queue_oldest_age_seconds") + ")", "{{instance}}"),)),
        ("Bytes of programs, by tier", "bytes", ((total("tier", metric("tensord_program_cache_bytes")), "{{tier}}"),)),
        ("Programs dropped, by tier and reason", "ops", ((total("tier, reason", rate("tensord_program_cache_evictions_total")), "{{tier}}, {{reason}}"),)),
        ("Programs in quarantine, by culprit", "none", ((total("culprit", metric("tensord_quarantined_programs")), "{{culprit}}"),)),
        ("Programs on disk that could not be used", "ops", ((total("reason", rate("tensord_program_cache_load_errors_total")), "{{reason}}"),)),
    )),
    ("Sessions", (
        ("Sessions", "none", (
            (total("instance", metric("tensord_sessions")), "{{instance}}"),
            (limit("sessions.count"), "limit"))),
        ("Sessions whose lease ended", "ops", ((total("instance", rate("tensord_sessions_expired_total")), "{{instance}}"),)),
        ("Tensors of clients", "none", ((total("device", metric("tensord_resident_tensors")), "{{device}}"),)),
        ("Bytes of clients' tensors", "bytes", (
            (total("device", metric("tensord_resident_bytes")), "{{device}}"),
            (limit("sessions.device_bytes"), "limit"))),
        ("Tensors that went, by reason", "ops", ((total("reason", rate("tensord_tensor_evictions_total")), "{{reason}}"),)),
        ("Bytes of tensors moved, by direction", "Bps", ((total("direction", rate("tensord_transfer_bytes_total")), "{{direction}}"),)),
        ("Moves of tensors: 99 of 100, by direction", "s", ((quantile(0.99, "tensord_transfer_seconds", "direction"), "{{direction}}"),)),
        ("What tenants have of what they may have", "percentunit", (("max by (tenant, resource) (" + metric("tensord_tenant_quota_ratio") + ") > 0", "{{tenant}}: {{resource}}"),)),
    )),
    ("Memory and process", (
        ("Memory of the process", "bytes", (
            (total("instance", metric("process_resident_memory_bytes")), "{{instance}}"),
            (f"min({metric('tensord_memory_limit_bytes')})", "limit"))),
        ("Memory that no metric explains", "bytes", ((UNACCOUNTED, "{{instance}}"),)),
        ("Memory of devices, by state", "bytes", (
            (total("device, state", metric("tensord_memory_bytes")), "{{device}}: {{state}}"),
            (total("device", metric("tensord_memory_promised_bytes")), "{{device}}: promised"))),
        ("Bytes of requests in progress", "bytes", (
            (total("instance", metric("tensord_rpc_in_flight_bytes")), "{{instance}}"),
            (limit("in_flight_bytes"), "limit"))),
        ("Threads and descriptors", "none", (
            (total("instance", metric("process_threads")), "threads of {{instance}}"),
            (total("instance", metric("process_open_fds")), "descriptors of {{instance}}"))),
        ("Certificates end in", "s", (("min by (certificate) (" + metric("tensord_tls_certificate_expiry_timestamp_seconds") + " < Inf) - time()", "{{certificate}}"),)),
        ("Time series, and lines of the log that were lost", "none", (
            (f"sum({metric('tensord_metrics_series')})", "series"),
            (f"sum({metric('tensord_log_dropped_total')})", "lost lines"))),
    )),
)

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panel(number, place, title, unit, queries, kind="timeseries"):
    fields = {"unit": unit, "min": 0} if kind == "timeseries" else {"unit": unit}
    targets = [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
               for i, (expression, legend) in enumerate(queries)]
    if kind == "heatmap":
        targets[0]["format"] = "heatmap"
    return {"id": number, "type": kind, "title": title, "datasource": SOURCE, "gridPos": place, "targets": targets,
            "fieldConfig": {"defaults": fields, "overrides": []}}


def panels():
    result, y = [], 0
    for title, row in ROWS:
        result.append({"id": len(result) + 1, "type": "row", "title": title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}})
        y += 1
        columns = 6 if title == "Overview" else 3
        height = 4 if title == "Overview" else HEIGHT
        width = WIDTH // columns
        for i, description in enumerate(row):
            place = {"x": i % columns * width, "y": y + i // columns * height, "w": width, "h": height}
            result.append(panel(len(result) + 1, place, *description))
        y += (len(row) + columns - 1) // columns * height
    return result


def variable(name, query):
    return {"name": name, "type": "query", "datasource": SOURCE, "query": query, "refresh": 2,
            "includeAll": name == "instance", "multi": name == "instance", "sort": 1}


def dashboard():
    return {
        "title": "tensord", "uid": "tensord", "tags": ["tensord"], "schemaVersion": 38, "version": 1, "editable": True,
        "refresh": "30s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser",
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus"},
            variable("job", "label_values(tensord_build_info, job)"),
            variable("instance", 'label_values(tensord_build_info{job="$job"}, instance)'),
        ]},
        "panels": panels(),
    }


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1))
