use std::sync::Arc;
use std::time::Duration;

use coordkit::{Coordinator, Key, Result, StoreUrl};

use crate::escape::Escaped;
use crate::output::tell;

/// Asks the store until it answers, and tells standard error while it does not. Fails when the store refuses us for
/// good.
pub(crate) async fn for_the_store(coordinator: &Arc<dyn Coordinator>, store: &StoreUrl) -> Result<()> {
    let (env, mut told) = (coordinator.env(), None);
    let key = Key::new("/coord-probe").unwrap_or_else(|_| Key::root());
    loop {
        match coordinator.within(PATIENCE).get(&key).await {
            Ok(_) => break,
            Err(error) if error.is_transient() => {
                if told != Some(error.to_string()) {
                    let why = error.to_string();
                    tell(format!("waiting for the store {store}: {}", Escaped::new(&why)));
                    told = Some(error.to_string());
                }
            }
            // It answered.
            Err(error) if matches!(error.kind(), coordkit::ErrorKind::PermissionDenied(_)) => break,
            Err(error) => return Err(error),
        }
        env.sleep(PAUSE).await;
    }
    if told.is_some() {
        tell(format!("the store {store} answers"));
    }
    Ok(())
}

/// How long one question may take before people are told that we wait.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(500);
