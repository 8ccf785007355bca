"""What each mistake is called, in snake case after the mistake, by the room that finds it first.

Programs and tests compare codes; sentences are for people and may be worded anew.
"""

from __future__ import annotations

from typing import Literal

Code = Literal[
    # any room
    "unwritable",
    # calculus and guarantee
    "busy_period_too_long", "overloaded", "unbounded", "unusable_recording",
    # spec
    "address_twice", "age_below_deadline", "aggregate_without_window",
    "arrival_keys", "bad_expression", "bad_figure", "bad_filter",
    "bad_max_rate", "bad_name", "bad_on_late", "bad_operator_name", "bad_quantile", "bad_value",
    "cdr_and_schema", "chain_length", "connector_kind", "connector_place", "connector_topic",
    "from_of_own", "key_of_other_connector",
    "calls_unlike_samples", "confidence_of_all", "no_confidence", "no_percentage", "no_distribution", "too_few_samples",
    "closes_after_deadline", "contradicting_selectivity", "core_link_of_one_core",
    "cost_beyond_cap", "cost_beyond_every",
    "cost_too_large",
    "count_of_field", "cycle", "degraded_no_cheaper", "degraded_unlike", "degraded_window", "different_shedders",
    "empty_file", "every_and_arrival", "file_of_another_kind", "gap_above_period", "hang_too_short",
    "hop_beyond_length",
    "hop_of_another_kind", "inputs_not_alike", "insecure_off_loopback", "ipv6_without_brackets", "join_by_count",
    "join_fields_of_other_inputs", "join_in_groups", "join_of_several_in_window", "join_with_parameters",
    "join_without_on", "keep_without_within", "key_twice", "key_without_other", "latency_without_throughput",
    "lateness_of_count",
    "leads_to_no_output",
    "link_to_itself", "link_twice", "may_run_nowhere", "mean_above_worst_case", "migrate", "missing_key",
    "missing_parameter", "name_too_long", "name_twice", "names_differ_by_case", "names_no_field", "negative",
    "negative_time", "never_late", "no_code_hash", "no_common_order", "no_common_source", "no_deadline_behind",
    "no_expression",
    "no_figure", "no_host", "no_host_and_port", "no_key", "no_keys", "no_max_age", "no_node", "no_number", "no_pace",
    "no_source_left",
    "operator_as_source", "other_pace", "source_as_operator",
    "no_tuple_passes", "no_window_length_function", "not_above_zero", "not_available_yet", "not_finite", "not_json",
    "no_range",
    "not_text", "not_yaml", "offset_beyond_every", "on_without_join", "on_without_window", "options_of_chain",
    "options_of_chain_member",
    "other_version", "out_of_range", "output_of_source", "output_twice", "parameter_type", "query_not_measured",
    "query_too_large", "query_twice", "queue_holds_no_tuple", "range_reversed", "reserved_name", "run_or_chain",
    "selectivity_of_window", "several_results_to_window", "several_ways_to_fusion", "several_ways_to_window",
    "side_of_window", "size_without_most", "source_declared_differently", "source_named_as_operator",
    "source_not_behind",
    "stream_read_twice", "sync_kind", "sync_of_map", "sync_of_window", "tab", "throughput_without_latency",
    "timeout_of_each", "too_few_inputs", "too_large", "too_long", "too_many_figures", "too_many_nodes",
    "too_many_windows", "too_short", "type_mismatch", "unknown_codec", "unknown_field", "unknown_figure",
    "unknown_input", "unknown_key", "unknown_measured_operator", "unknown_node", "unknown_operator",
    "unknown_parameter", "unknown_ros_type", "unknown_security", "unknown_side_input", "unknown_stream", "unknown_word",
    "unreachable_host", "unread_stream", "unreadable", "unreadable_recording", "unused_certificates",
    "useless_recording", "value_outside_range", "value_without_max_rate", "which_quantile",
    "window_length", "window_of_map",
    "window_of_window_results", "worst_below_mean", "wrong_number_of_inputs", "wrong_shape",
    # protos
    "bad_policy_duration", "bad_policy_number", "bad_policy_parameter", "bad_policy_share", "no_policy_name",
    "policy_never_live", "policy_parameter_twice", "unknown_policy", "unknown_policy_parameter",
    # solve
    "ambiguous_name", "field_of_chain", "measured_cost", "no_change", "not_in_place",
    "nothing_below", "nothing_to_change", "place_not_allowed",
    "tighten_without_bounds", "too_many_failures", "unknown_name", "unknown_output",
    # solve: no placement
    "age_beyond_deadline", "bandwidth_exceeded", "burst_beyond_deadline", "cap_exceeded", "caps_exceeded",
    "condition_broken", "guessed_costs", "infeasible", "memories_exceeded", "memory_exceeded", "more_reasons",
    "nearest_is_late", "no_solver",
    "no_survival", "no_survival_in_time", "no_way", "not_guaranteed", "out_of_time", "path_too_costly",
    "path_too_long", "too_many_exits", "tuple_beyond_deadline", "unbounded_arrivals", "unbounded_outputs",
    "unproven", "violated_constraint", "within_tolerance",
    # plan
    "changed", "directory", "no_failover", "not_a_plan", "nothing_to_deploy",
    # change
    "change_of_surviving_plan", "last_query", "not_admitted", "output_not_kept", "runs_already", "still_draining",
    "unknown_query",
    # fleet
    "agent_twice", "bad_tls_folder", "damaged", "host_elsewhere", "no_address", "no_ca", "no_certificate", "no_file",
    "no_identity", "no_key_pair", "no_nodes", "expired", "not_valid_yet", "of_another_ca", "operators_not_given",
    "port_twice", "run_of_another_plan", "too_few_cores", "too_many_runs", "unknown_host", "unusable_ca",
    "unusable_identity",
    # fleet: agents, deployments and traces
    "agent_ended", "call_refused", "caller_not_taken", "deployment_begun", "link_local_host", "no_agent",
    "no_answer", "no_port", "no_ports", "no_tls13", "not_confirmed", "not_deployed", "not_drained",
    "not_given_up", "not_ready", "not_running", "not_running_everywhere", "not_started", "not_stopped",
    "nothing_to_collect", "not_collected", "nothing_measured", "other_node", "other_places", "other_plan_runs",
    "other_trace", "own_loopback", "plan_too_large", "records_do_not_continue", "records_gone", "records_lost",
    "refused_by_agent", "unreachable", "would_end_queries",
    # report
    "java_too_old", "no_java", "no_records", "no_report_extra", "no_trace", "nothing_admitted", "other_plan",
    "records_lacking", "no_setting", "no_shared_files", "spark_does_not_start", "spark_failed", "too_many_plans",
    "too_many_records", "unbalanced", "unreadable_plan", "unusable_java",
    # local_run
    "bad_duration", "bad_rate", "feed_of_several_sources", "incomplete", "made_by_node", "no_listing",
    "no_source", "not_local",
    "nothing_to_feed", "option_twice", "rate_and_by", "simulation_killed", "slow_import", "unknown_source",
    "unknown_unit",
    # cli
    "not_empty", "nothing_may_change", "nothing_within", "there_already",
    # lab
    "no_namespaces", "no_netem", "not_allowed", "not_installed",
    # units
    "missing_unit", "no_quantity", "too_fine", "too_large_quantity",
    # payloads
    "payload_above_memory", "payload_too_large",
]  # fmt: skip
