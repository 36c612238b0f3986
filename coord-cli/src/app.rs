use std::path::PathBuf;
use std::sync::Arc;

use coordkit::{Config, Coordinator, Key, Override, Sources};

use crate::cli::Global;
use crate::exit::Exit;
use crate::output::Output;

/// What the commands share: the configuration, and the way to standard output.
pub(crate) struct App {
    pub(crate) config: Config,
    /// The file that it was read from, if one was.
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) out: Output,
}

// === impl App ===

impl App {
    /// Reads the configuration; `overrides` are the command's own flags (see [`App::flag`]).
    pub(crate) fn new(global: &Global, overrides: impl IntoIterator<Item = Override>) -> Result<App, Exit> {
        let from_environment = || {
            // A path need not be UTF-8.
            let file = std::env::var_os("COORD_CONFIG");
            file.filter(|file| !file.is_empty()).map(PathBuf::from)
        };
        let config_file = global.config.clone().or_else(from_environment);
        let store = App::flag("--store", "store", global.store.as_ref());
        let sources = Sources {
            file: config_file.clone(),
            environment: Sources::process_environment(),
            overrides: store.into_iter().chain(overrides).collect(),
        };
        Ok(App {
            config: Config::load(&sources)?,
            config_file,
            out: Output::new(global.json),
        })
    }

    /// The way to standard output alone, for commands that need no store.
    pub(crate) fn without_store(global: &Global) -> Output {
        Output::new(global.json)
    }

    /// A flag that overrides a setting, if it was given.
    pub(crate) fn flag(by: &str, key: &str, value: Option<&String>) -> Option<Override> {
        value.map(|value| Override::new(by, key, value))
    }

    /// Opens the store, which need not be up yet. To be called within the runtime.
    pub(crate) fn connect(&self) -> Result<Arc<dyn Coordinator>, Exit> {
        Ok(coordkit::connect(&self.config)?)
    }
}

/// A key as the command line names it.
pub(crate) fn parse_key(text: &str) -> Result<Key, String> {
    Key::new(text).map_err(|error| match Key::new(format!("/{text}")) {
        Ok(key) => format!("{error}; did you mean {key}?"),
        Err(_) => error.to_string(),
    })
}

/// The key of something that has a name of its own: `nightly` is `<parent>/nightly`, `/a/b` is itself.
pub(crate) fn parse_name(parent: &str, text: &str) -> Result<Key, String> {
    let named = match text.starts_with('/') {
        true => Key::new(text),
        false => Key::new(parent).and_then(|parent| parent.child(text)),
    };
    match named {
        Ok(key) if key.is_root() => Err("/ is no name".into()),
        named => named.map_err(|error| error.to_string()),
    }
}

/// What this process is called if nobody says: `host-pid`.
pub(crate) fn default_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}", std::process::id())
}
