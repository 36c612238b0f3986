/// The one list: every group with its behaviours and what each proves. `$then` is what to make of it.
#[doc(hidden)]
#[macro_export]
macro_rules! __behaviours {
    ($then:ident $arguments:tt) => {
        $crate::$then! { $arguments
            leases {
                a_grant_tells_how_long_the_lease_surely_lives: "A grant says the granted ttl, above zero, and a moment until which the lease surely lives, counted from its sending.",
                the_longest_ttl_is_granted: "The longest allowed ttl may be asked for.",
                leases_of_all_clients_have_different_names: "No two leases of a store have the same name.",
                revoke_removes_all_entries_of_the_lease_at_once: "When a revoke has returned, no client finds an entry of that lease.",
                revoke_of_an_ended_lease_is_no_error: "Revoking a lease of one's own twice is no error.",
                revoke_leaves_other_leases_and_persistent_entries: "A revoke takes nothing that belongs to another lease or to none.",
                renew_of_a_revoked_lease_says_lost: "A renewal never succeeds for a revoked lease.",
                create_under_an_ended_lease_says_lost: "Nothing is created under a lease that has ended.",
                a_foreign_lease_is_refused_everywhere: "Only the coordinator that granted a lease may create under it, renew it or revoke it.",
                an_invented_lease_is_foreign: "A lease that nobody granted is refused as foreign.",
                many_leases_live_side_by_side: "One coordinator has many leases, and each ends on its own.",
                the_margin_leaves_something_of_the_granted_ttl: "A granted lease is long enough to be used before its margin.",
            }
            expiry {
                an_unrenewed_lease_ends_in_time_and_not_before: "A lease that nobody renews ends no earlier than valid_until and no later than its ttl and the slack.",
                a_lease_ends_in_time_after_its_last_renewal_and_not_before: "The same counts from the last renewal.",
                renewals_keep_a_lease_and_prove_it: "Renewals at the stated pace keep a lease for longer than its ttl, and each proves until when.",
                renew_of_an_expired_lease_says_lost: "A renewal never succeeds for an expired lease, and nothing is created under it.",
                renewing_one_lease_keeps_only_its_own_entries: "Renewing one lease of a coordinator does not renew another.",
                traffic_of_a_client_does_not_renew_its_leases: "Only renewals renew: other calls do not keep a lease alive.",
                an_updated_entry_still_ends_with_its_lease: "An update of an ephemeral entry does not detach it from its lease.",
                a_client_that_is_dropped_renews_nothing_further: "A coordinator dropped without close renews nothing: its entries end by themselves.",
                a_key_is_free_again_when_its_lease_has_ended: "After its holder's lease has ended, another client gets the key, with a higher token.",
            }
            entries {
                a_create_returns_the_entry_as_it_is_stored: "What create returns is what everybody then reads: key, value, lease, version and created.",
                a_taken_key_says_who_holds_it: "A create of a taken key changes nothing and names the holder, whoever that is.",
                equal_values_do_not_make_equal_owners: "A live entry is never taken over, not even with the same value.",
                a_persistent_entry_outlives_its_client: "A persistent entry stays when its client has closed.",
                created_rises_over_delete_and_recreate: "Each incarnation of a key has a higher created than the one before.",
                created_rises_across_clients_and_parents: "A later create has a higher created, whoever makes it and wherever.",
                a_new_holder_has_a_higher_token: "Who gets an ephemeral key after its holder lost it has a higher fencing token.",
                the_order_survives_a_recreated_parent: "Created keeps rising when the parent is deleted and made again.",
                values_are_kept_byte_for_byte: "Any bytes, also none, are read as they were written.",
                long_and_odd_names_work: "Every name that is a valid key can be used, with up to 255 bytes per segment.",
                a_key_of_the_greatest_length_works: "A key of 1024 bytes can be used.",
                create_with_ttl_binds_the_entry_to_a_lease_of_its_own: "Create-if-absent with a ttl is one call, and its entry ends with that ttl.",
            }
            parents {
                missing_parents_are_made_empty_and_persistent: "A create makes its missing parents: explicit, empty, persistent entries.",
                parents_that_exist_stay_as_they_are: "A create does not touch parents that exist.",
                parents_are_kept_when_their_children_go: "Parents stay when their last child goes.",
                a_parent_that_was_deleted_is_made_again: "A create never fails for want of a parent, also when another client has just deleted it.",
                an_ephemeral_entry_has_no_children: "A create below an ephemeral entry, at any depth, is refused and names that ancestor.",
                delete_refuses_a_key_with_children: "A key with children of any kind cannot be deleted.",
                a_sibling_with_a_longer_name_is_no_child: "A key is never a prefix: what begins alike is neither child nor in the way.",
                delete_recursive_takes_everything_below: "The recursive delete takes the entry and all below it, and nothing else.",
            }
            conditional {
                an_update_changes_value_and_version_and_nothing_else: "An update changes value and version; created, key and lease stay.",
                an_update_keeps_the_lease: "An ephemeral entry that was updated, by anybody, still goes with its lease.",
                an_unconditional_update_needs_only_an_entry: "An update without a version applies to whatever state the entry is in.",
                a_write_to_a_missing_key_is_not_found: "An update or delete of what does not exist is NotFound and creates nothing.",
                a_write_on_an_old_version_is_refused: "An update or delete on an old version is refused and not applied.",
                a_write_on_an_earlier_incarnation_is_refused: "A version of an earlier incarnation never fits a later one.",
                a_delete_takes_exactly_the_expected_entry: "A delete with the right version, or without one, takes that entry and no other.",
                a_version_survives_text: "A version can be shown, parsed and used again.",
            }
            settling {
                the_same_create_again_settles_a_dropped_one: "After a create that was dropped, the same create again finds or makes its one entry.",
                the_same_sequential_create_again_makes_no_second_entry: "The same holds for sequential creates: never are there two.",
                a_dropped_create_that_is_abandoned_leaves_nothing: "When an abandon has returned, the entry is gone and does not appear later.",
                a_dropped_sequential_create_that_is_abandoned_leaves_nothing: "The same holds for sequential creates.",
                an_abandoned_create_can_no_longer_take_effect: "An abandoned create, sent or not, is refused from then on; a fresh one is not.",
                abandon_leaves_a_rivals_entry_alone: "An abandon takes only what that very create has made.",
                an_abandoned_entry_with_children_is_kept: "An abandon never takes an entry from above its children: it is refused as not empty.",
                an_ordinary_sibling_survives_an_abandoned_sequential_create: "The same holds among the children of one parent.",
                a_dropped_create_leaves_nothing_longer_than_its_lease: "What a dropped create made goes with its lease.",
                a_dropped_write_happens_once_or_not_at_all: "A dropped conditional update never overwrites what was written after it.",
            }
            reads {
                get_sees_every_own_write: "get sees each write of its own coordinator at once, whichever lease it went through.",
                children_sees_every_own_write: "children sees each write of its own coordinator at once.",
                get_latest_sees_every_finished_write: "get_latest sees each write that had finished anywhere.",
                reads_never_go_back_in_time: "No read of a coordinator is older than an earlier one.",
                get_is_not_older_than_what_was_seen_before: "get is not older than a watch event or a refusal that its coordinator has seen.",
                a_missing_key_reads_as_nothing: "Reading what does not exist gives nothing, and is no error.",
                children_are_immediate_and_ordered_by_name: "children gives the immediate children with their values, ordered by name, and nothing that begins alike.",
                a_large_listing_works: "A listing whose values together exceed any message limit works.",
                a_thousand_children_are_listed: "A listing of a thousand children is complete and in order.",
            }
            standing {
                sequential_entries_get_names_of_their_own: "The store names sequential entries below their parent, each differently, also when made side by side.",
                sequential_entries_are_ordered_by_their_creation: "Created is the order of sequential entries, whichever client made them.",
                the_first_stands_lowest_and_each_next_behind_it: "standing tells the entry itself and the sibling created immediately before.",
                who_goes_in_the_middle_is_skipped: "When an entry in the middle goes, the next one stands behind the one before, not lowest.",
                an_entry_that_is_gone_does_not_stand: "standing of an entry that is gone, or of another created, says so.",
                ordinary_siblings_do_not_count: "Only live sequential siblings of the same parent count.",
                standing_shows_the_entry_as_it_is_now: "An update changes neither place nor identity, and standing shows it.",
                the_next_stands_lowest_when_the_lease_before_it_has_ended: "When the predecessor's lease has ended, the next stands lowest.",
                fifty_siblings_stand_in_line: "A long line stands in order, also when every second one goes.",
            }
            watches {
                a_watch_of_a_key_tells_its_life: "A watch of a missing key starts empty and tells creation, change and deletion, of any client.",
                changes_come_as_put_and_delete: "A change comes as the entry as it is now, and a delete names the incarnation that went.",
                a_watch_starts_with_what_exists: "The first event is the state, in order, with everything that exists.",
                the_state_holds_every_write_that_had_finished: "The first state is of a moment after the call: no finished write is missing from it.",
                a_watch_of_children_tells_their_lives: "A watch of children tells them all, also those of a parent that did not exist.",
                a_watch_of_children_tells_nothing_else: "Neither grandchildren, nor the key itself, nor what begins alike appear in a watch.",
                the_children_of_the_root_can_be_watched: "The root can be watched for children.",
                a_recreated_key_shows_a_new_created: "Delete-and-recreate is never taken for no change.",
                a_watch_tells_when_a_lease_has_ended: "The end of a lease is told, in time and not before.",
                a_watch_tells_of_a_revoke_and_of_a_close: "Entries that go by revoke or close are told.",
                two_watches_of_one_target_both_tell: "Watches of the same target on one client do not take events from each other.",
                dropping_a_watch_leaves_the_others: "Dropping a watch ends that one only.",
            }
            watch_load {
                a_watch_never_goes_back_in_time: "Values in a watch never go back, and reach the last one.",
                nothing_is_missed_between_state_and_changes: "Wherever among the writes a watch starts, it comes to the last one.",
                a_write_beside_the_start_of_a_watch_is_never_missed: "A single write beside the start of a watch is in its state or told after it.",
                under_load_a_watch_ends_equal_to_the_store: "After many creates, changes and deletes, a watch adds up to what is stored.",
                a_slow_reader_gets_the_latest_and_little_else: "What was not read is merged to the latest per key.",
                an_unread_watch_holds_nobody_up: "A watch that nobody reads blocks no call.",
                two_hundred_watches_on_one_client_all_tell: "One client has many watches, and each tells its own.",
            }
            bad_input {
                limits_and_slacks_are_sane: "Capabilities are the same for each client and within reason; the value limit is 512 KiB.",
                a_zero_or_absurd_ttl_is_refused: "A ttl of zero or over the limit is refused, definitely.",
                a_value_up_to_the_limit_works_and_one_over_it_is_refused: "The value limit holds to the byte, for creates and updates.",
                a_name_that_only_the_store_may_choose_is_refused: "Names that begin with ~ cannot be asked for.",
                the_root_is_no_entry: "The root is refused where an entry is meant, by the driver itself, too.",
                sequential_entries_below_the_root_work: "The root is a parent like any other.",
                an_invalid_key_does_not_come_into_being: "An invalid name never reaches a store.",
                a_refusal_names_operation_and_key: "Each refusal names what was asked, of which key.",
                standing_of_a_made_up_entry_is_nothing: "standing of an entry that never was is no error.",
            }
            deadlines {
                reads_end_by_their_deadline_and_are_never_unknown: "A read ends by its deadline, and is never of unknown outcome.",
                writes_end_by_their_deadline_and_can_be_settled: "A write ends by its deadline; an unknown create is settled by the same again, or by abandon.",
                within_only_tightens: "A longer deadline than the present has no effect, and both share one coordinator.",
                a_dropped_read_is_free: "Dropping the future of a read harms nothing.",
                the_clock_and_the_randomness_of_a_client_work: "A client's clock advances, and no two nonces are equal.",
            }
            closing {
                close_removes_what_its_leases_hold: "When close has returned, nothing of its leases is left, and nothing else has gone.",
                close_is_idempotent: "Closing again, also at the same time, is no error.",
                every_call_after_close_says_closed: "Every method says Closed, definitely, on every view of a closed coordinator.",
                close_ends_every_watch_with_closed: "Watches end with Closed, also for a reader who waits.",
                closing_a_view_with_a_deadline_closes_the_whole: "A coordinator and its views share leases, and one close.",
                calls_in_flight_at_close_end: "Calls beside a close end, and leave nothing behind.",
                one_clients_close_leaves_the_others_open: "Closing one client does not disturb another.",
            }
            concurrency {
                of_two_creates_of_one_key_exactly_one_wins: "Of concurrent creates of one key exactly one succeeds, and the other names it.",
                compare_and_swap_loses_no_increment: "Conditional updates of several clients lose nothing.",
                a_child_never_lacks_its_parent: "Deleting a parent beside the create of a child is decided atomically.",
                an_ephemeral_entry_and_its_child_never_both_come_into_being: "The refusal of ephemeral parents is decided atomically.",
                a_conditional_write_never_hits_a_recreated_entry: "A conditional update beside delete-and-recreate never changes the new entry.",
                of_two_conditional_deletes_one_wins: "Of concurrent deletes of one version exactly one succeeds.",
                many_calls_of_one_client_run_side_by_side: "Calls of one client may overlap.",
            }
            prefix {
                keys_are_as_seen_from_inside_the_prefix: "Keys in entries, listings, events and refusals are as seen from inside the prefix.",
                two_prefixes_do_not_see_each_other: "What lies under another prefix, even one that begins alike, is neither seen nor touched.",
            }
        }
    };
}

__behaviours! { __constant () }
