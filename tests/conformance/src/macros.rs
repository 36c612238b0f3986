/// One `#[tokio::test]` per behaviour, each named after it, on the store that the [`Opener`](crate::Opener) opens.
///
/// The expression is evaluated once per test; all clients of that test come from it. The crate that uses it needs
/// tokio with `rt`, `macros` and `time`, and for `paused:` also `test-util`.
///
/// | form | runs in |
/// | --- | --- |
/// | `conformance_tests!(opener)` | real time, one thread |
/// | `conformance_tests!(multi_thread: opener)` | real time, two threads |
/// | `conformance_tests!(paused: opener)` | virtual time: for drivers whose every timer is tokio's |
#[macro_export]
macro_rules! conformance_tests {
    (paused: $opener:expr) => {
        $crate::__behaviours! { __tests ((start_paused = true) $opener) }
    };
    (multi_thread: $opener:expr) => {
        $crate::__behaviours! { __tests ((flavor = "multi_thread", worker_threads = 2) $opener) }
    };
    ($opener:expr) => {
        $crate::__behaviours! { __tests ((flavor = "current_thread") $opener) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    (
        ($runtime:tt $opener:expr)
        $($group:ident { $($name:ident: $promise:literal,)+ })+
    ) => {
        $($(
            #[doc = $promise]
            #[::tokio::test $runtime]
            async fn $name() {
                let opener = $opener;
                $crate::assert_kept(stringify!($name), &opener).await;
            }
        )+)+
    };
}

/// The list as a constant.
#[doc(hidden)]
#[macro_export]
macro_rules! __constant {
    (
        ()
        $($group:ident { $($name:ident: $promise:literal,)+ })+
    ) => {
        /// Every promise of the contract, in the order of the contract.
        pub const BEHAVIOURS: &[$crate::Behaviour] = &[$($(
            $crate::Behaviour {
                group: stringify!($group),
                name: stringify!($name),
                promise: $promise,
                check: |scratch| Box::pin($crate::groups::$group::$name(scratch)),
            },
        )+)+];
    };
}
