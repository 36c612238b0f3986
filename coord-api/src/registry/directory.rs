use std::sync::Arc;

use super::config::default_prefix;
use super::{Instance, View};
use crate::{Coordinator, Error, ErrorKind, Key, Operation, Result};

/// The readers' side of the [`Registry`](crate::Registry): who offers a service. Needs no session.
#[derive(Debug, Clone)]
pub struct Directory {
    coordinator: Arc<dyn Coordinator>,
    prefix: Key,
}

impl Directory {
    /// What is registered below `/services`.
    pub fn new(coordinator: Arc<dyn Coordinator>) -> Directory {
        Directory::with_prefix(coordinator, default_prefix())
    }

    /// What is registered below another key.
    pub fn with_prefix(coordinator: Arc<dyn Coordinator>, prefix: Key) -> Directory {
        Directory { coordinator, prefix }
    }

    /// The names under which there is, or once was, an instance.
    pub async fn services(&self) -> Result<Vec<String>> {
        let children = self.coordinator.children(&self.prefix).await?;
        Ok(children.iter().map(|entry| entry.key.name().to_owned()).collect())
    }

    /// The instances of a service now, ordered by id.
    pub async fn list(&self, service: &str) -> Result<Vec<Instance>> {
        let children = self.coordinator.children(&self.key(service)?).await?;
        Ok(children.iter().filter_map(Instance::of).collect())
    }

    /// A view of a service that follows its changes. Returns at once; the view fills when the store answers.
    pub fn view(&self, service: &str) -> Result<View> {
        Ok(View::open(self.coordinator.clone(), self.key(service)?))
    }

    fn key(&self, service: &str) -> Result<Key> {
        let key = self.prefix.child(service);
        key.map_err(|invalid| Error::definite(Operation::Children, None, ErrorKind::InvalidKey(invalid)))
    }
}
