"""What each mistake is called that the vehicles' commands find, by the room that finds it.

Programs and tests compare codes; sentences are for people and may be worded anew.
"""

from __future__ import annotations

from typing import Literal

Code = Literal[
    # several rooms
    "given_twice", "missing_column", "missing_tool", "no_file", "no_number", "not_complete", "not_json",
    "options_do_not_fit", "out_of_range", "unknown_vehicle", "unknown_word", "unreadable", "wrong_form",
    # cli
    "no_directory", "no_traces", "not_a_directory", "not_a_file", "not_empty", "nothing_to_judge", "unwritable",
    # export
    "begins_below_zero",
    # inputs
    "arrival_not_replayed", "negative", "type_not_fed",
    # maps
    "no_lanes", "no_place",
    # readers
    "bad_row", "document_type", "empty_file", "no_ego", "no_scene_file", "no_usable_row", "not_csv", "not_xml",
    "other_version", "parquet", "too_deep", "too_large", "unknown_format", "unknown_scenario", "wrong_direction",
    "wrong_unit",
    # record
    "no_collision_course", "no_such_traffic", "nothing_hidden", "seen_too_late", "tool_failed",
    # replay
    "laps_too_short", "missing_key", "no_address", "no_burst", "no_source", "not_accepted", "not_trusted",
    "unreachable", "went_away", "wrong_shape",
    # story
    "contradicting_records", "failed_instance", "no_admitted_record", "no_clock_record", "no_lineage",
    "no_output_record", "no_ran_record", "no_received_record", "no_sent_record", "no_trace", "no_trigger_record",
    "no_verdict", "not_a_plan", "other_encounter", "other_plan",
    # v2v
    "no_mark", "no_messages", "nothing_received", "too_many_rows",
]  # fmt: skip
