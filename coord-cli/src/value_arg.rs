use std::io::Read;

use crate::exit::Exit;

/// The value that a command line names: the text itself, or standard input for `-`.
pub(crate) async fn read(text: String, limit: usize) -> Result<Vec<u8>, Exit> {
    if text != "-" {
        return Ok(text.into_bytes());
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        // One more than allowed is enough to be refused for it.
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        std::io::stdin()
            .lock()
            .take(most)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    });
    match read.await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(Exit::failed(format!("standard input: {error}"))),
        Err(error) => Err(Exit::failed(format!("standard input: {error}"))),
    }
}
