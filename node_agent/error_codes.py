"""What each mistake is called that an agent or its tools find, by the room that finds it.

Programs and tests compare codes; sentences are for people and may be worded anew.
"""

from __future__ import annotations

from typing import Literal

Code = Literal[
    # several rooms
    "bad_name", "insecure_off_loopback", "no_file", "no_node", "no_source", "not_a_tuple", "not_json",
    "not_ready", "not_tls", "other_node", "other_type", "parameters_not_json", "refused", "unknown_output",
    "unknown_source", "wrong_number_of_inputs", "wrong_shape",
    # core
    # tls
    "encrypted", "expired", "no_certificate", "no_tls13", "not_pem", "not_tls13", "not_valid_yet", "not_verified",
    "of_another_ca", "open_to_all", "other_key", "other_purpose",
    # operators
    "aggregate_without_window", "declares_nothing", "default_not_json", "missing_method", "missing_parameter",
    "missing_side_input", "no_aggregate", "no_join", "no_operator", "no_signature", "no_source_function",
    "not_declared",
    "not_decoded", "not_encoded", "not_finite", "not_loaded", "not_ordinary", "not_python", "open_arguments",
    "operator_twice", "other_code", "other_inputs", "other_name", "parameter_type", "raised", "too_deep",
    "source_as_operator", "too_large", "unknown_argument", "unknown_codec", "unknown_operator", "unknown_parameter",
    "wrong_number_of_arguments", "wrong_window", "wrong_window_length",
    "input_changed", "result_changed", "side_input_changed", "too_many_results",
    # protos: plan.json and policies
    "bad_policy_duration", "bad_policy_number", "bad_policy_parameter", "bad_policy_share", "changed",
    "no_policy_name", "not_a_plan", "other_version", "policy_never_live", "policy_parameter_twice",
    "unknown_policy", "unknown_policy_parameter",
    # testing
    "not_a_list", "not_planned", "side_input_as_input", "tuples_never_come", "unknown_input",
    "unknown_side_input", "windows_mixed",
    "infeasible", "not_installed", "out_of_time", "planning_failed",
    # host
    "in_use", "not_usable",
    # supervisor and control
    "ended", "no_machine", "no_route", "several_queries", "wrong_hash",
    # client
    "bad_age", "bad_origin", "closed", "no_addresses", "no_answer", "no_nodes", "no_result", "not_an_address", "null",
    "other_length",
    "unknown_node", "unreachable", "unsupported",
    # connectors
    "not_connectable", "outside", "unknown_connector", "unknown_type",
    # tools
    "cut_off", "damaged", "no_core", "no_header", "no_identity", "no_name", "no_overlap", "no_payload", "no_time",
    "not_allowed", "not_connected", "not_csv", "not_mcap", "not_repeatable", "not_serial", "not_utf8",
    "nothing_to_repeat", "option_apart", "other_file", "other_separator", "several_topics", "unknown_encoding",
    "unknown_format", "unknown_speed", "unknown_topic", "unknown_user",
    # wire: the local plan
    "bad_identity", "bad_ids", "closes_no_windows", "deadlines_in_wrong_order", "idle_service_with_period", "no_input",
    "no_service", "no_windows", "not_a_chain", "not_admitted", "not_described", "not_in_batches", "not_in_one_unit",
    "not_its_own", "not_made_here", "same_stamp", "too_many", "two_sheddings", "unknown_on_full", "unknown_shedding",
    "unknown_window_kind", "value_not_computed", "wrong_keys", "wrong_number_of_sources",
    # virtual
    "arrivals_not_simulated", "barrier_of_several_operators", "burst_of_single_tuples", "changes_too_close",
    "empty_file", "factors_in_wrong_order", "given_twice", "made_here", "negative", "no_duration", "no_factor",
    "no_unit",
    "not_an_object", "not_empty", "not_simulated", "other_deadline", "other_nodes", "other_policy",
    "other_source", "out_of_range", "regret_in_batches", "regret_of_sources", "regret_of_windows", "too_many_plans",
    "too_old",
    "unknown_jitter", "unknown_key", "unknown_word", "unreadable", "unwritable",
]  # fmt: skip
