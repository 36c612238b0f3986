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
        }
    };
}

__behaviours! { __constant () }
